print("sinchctl")
