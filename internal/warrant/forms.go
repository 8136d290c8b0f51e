package warrant

import "regexp"

// The forms of a warrant's own words. Whoever judges a script reads them again, so they are compiled once;
// those of values are many, large and seldom asked for, and are not.
var (
	numberForm   = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,14})$`)
	profileForm  = regexp.MustCompile(`^(?:` + subdomainPattern + `)$`)
	digestForm   = regexp.MustCompile(`^(?:` + hexPattern + `)$`)
	nameForm     = regexp.MustCompile(`^(?:` + namePattern + `)$`)
	enumWordForm = regexp.MustCompile(`^(?:[!-~]+)$`)
	classForm    = regexp.MustCompile(`^(?:` + classPattern + `)$`)
	hostForm     = regexp.MustCompile(`^(?:` + hostPattern + `)$`)
	clusterForm  = regexp.MustCompile(`^(?:` + clusterPattern + `)$`)
)
