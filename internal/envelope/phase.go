package envelope

// Phase is the value of the envelope's phase field. The first four run a
// signed script; the rest are built into the shim.
type Phase string

// The phases of the wire.
const (
	PhaseInstall   Phase = "install"
	PhaseJoin      Phase = "join"
	PhaseLeave     Phase = "leave"
	PhaseUninstall Phase = "uninstall"
	PhaseProbe     Phase = "probe"
	PhaseProve     Phase = "prove"
	PhaseOutcome   Phase = "outcome"
	PhaseStatement Phase = "statement"
)

// RunsScript reports whether the phase runs a script as root.
func (p Phase) RunsScript() bool {
	switch p {
	case PhaseInstall, PhaseJoin, PhaseLeave, PhaseUninstall:
		return true
	default:
		return false
	}
}

// Known reports whether the wire knows the phase.
func (p Phase) Known() bool {
	switch p {
	case PhaseProbe, PhaseProve, PhaseOutcome, PhaseStatement:
		return true
	default:
		return p.RunsScript()
	}
}

// wellFormed tells a phase that another version may know from no phase at all.
func (p Phase) wellFormed() bool {
	if p == "" || len(p) > 64 {
		return false
	}
	for i := range len(p) {
		c := p[i]
		if c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
