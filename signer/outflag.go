package main

import "slices"

// outputFile refuses the name of a format where -o names a file: other commands take formats there.
func outputFile(path string) error {
	if slices.Contains([]string{"text", "json", "yaml", "sarif"}, path) {
		return usage("-o is the file to write here, not a format: ./%s if the file is called that", path)
	}
	return nil
}
