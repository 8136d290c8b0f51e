package main

// version is what git said when the program was built; the linker fills it in (Makefile).
var version = "(devel)"
