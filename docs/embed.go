// Package docs carries the pages that `hostwarrant help TOPIC` prints, so that each text stands in one
// place: the specifications in spec, and the page of the command line. It decides nothing.
package docs

import "embed"

//go:embed cli.md spec/*.md
var pages embed.FS

// Pages are cli.md and spec/NAME.md.
func Pages() embed.FS { return pages }
