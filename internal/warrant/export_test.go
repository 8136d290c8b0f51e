package warrant

// TypeRule shows the tests what a type is: an ERE and the most bytes.
func TypeRule(name string) (ere string, most int) {
	r := typeRule(name)
	return r.ere, r.max
}

// AddressRule is that of the two addresses, which have no type.
func AddressRule() (ere string, most int) { return addressPattern, maxName }

// TargetRules are those of the values of targets.
func TargetRules() map[string]string {
	return map[string]string{TargetClass: classPattern, TargetHost: hostPattern, TargetCluster: clusterPattern}
}
