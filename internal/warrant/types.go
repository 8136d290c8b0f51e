package warrant

// Types returns the types that a parameter may have.
func Types() []string {
	return []string{"dns1123", "ip", "hostport", "url", "b64", "hex", "int", "bool", "labels", "taints", "text"}
}

const subdomainPattern = `[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*`
