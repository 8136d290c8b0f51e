package warrant

// The forms of a warrant's own words. Whoever judges a script reads them again, so they are compiled once;
// those of values are many, large and seldom asked for, and are not.
var (
	numberForm   = compiled(`0|[1-9][0-9]{0,14}`)
	profileForm  = compiled(subdomainPattern)
	digestForm   = compiled(hexPattern)
	nameForm     = compiled(namePattern)
	enumWordForm = compiled(`[!-~]+`)
	classForm    = compiled(classPattern)
	hostForm     = compiled(hostPattern)
	clusterForm  = compiled(clusterPattern)
)
