import CommandLineInterface

runProgram()
