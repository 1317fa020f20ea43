#include "csys.h"
