package object

// HostRun is what we read of a HostRun.
type HostRun struct {
	Meta
	Host, Profile, Secret, NodeName string
	Phase                           string
	Vars                            map[string]string
	// Finished is true once condition Succeeded is True or False.
	Finished bool
}
