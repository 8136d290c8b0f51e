// Package script holds what is refused in the bytes of a phase script wherever
// we verify, and tells how bytes differ from the signed ones when only line
// ends do.
//
// It stops scripts whose run bytes would differ from their signed bytes: bash
// drops NUL, upstream renders "{{" as a template, and an API server replaces
// what is not UTF-8.
package script
