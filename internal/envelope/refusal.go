package envelope

// Fault says whose a refusal is: who has to change something before the same run can succeed.
type Fault string

// The faults. Where a code leaves it open, the host is never named alone: a slip in a profile or policy
// must not take a good host out of use.
const (
	FaultOfProfile Fault = "the profile or the run"
	FaultOfHost    Fault = "the host"
	FaultOfEither  Fault = "the profile or the host"
)

// Refusal explains an exit code with which a host refused a run.
type Refusal struct {
	Fault Fault
	// Next is what to do, with the command to begin with.
	Next string
}

// checkHost ends the advice about what a host trusts or runs.
const checkHost = "`hostwarrant host check` names what the host has otherwise than the policy"

// Refusal explains the code; false for one that refuses nothing.
func (c ExitCode) Refusal() (Refusal, bool) {
	switch c {
	case ExitSignature:
		return Refusal{FaultOfEither, "the policy in force takes the signature and the host does not: " + checkHost + ", then send a signers statement, or sign with a key that the host trusts"}, true
	case ExitParam:
		return Refusal{FaultOfEither, "compare the run's vars with what `hostwarrant inspect` shows that the script declares; where endpoint or CA are refused, " + checkHost}, true
	case ExitEnvelope:
		return Refusal{FaultOfHost, "its shim does not read what this relay writes: " + checkHost + ", the version of the shim too"}, true
	case ExitPhase:
		return Refusal{FaultOfHost, "its shim does not know this phase, as karpenter-provider-ssh's and older ones do not: set the host up again with `hostwarrant host provision`"}, true
	case ExitRevoked:
		return Refusal{FaultOfProfile, "a key that signed it is revoked: `hostwarrant sign` it again, at the next serial, with another key"}, true
	case ExitWarrant:
		return Refusal{FaultOfProfile, "`hostwarrant lint` names the line; add or mend the warrant, and `hostwarrant sign` it again"}, true
	case ExitTarget:
		return Refusal{FaultOfEither, "compare the targets that `hostwarrant inspect` shows with the host's class, keys and cluster; " + checkHost}, true
	case ExitPhaseOrProfile:
		return Refusal{FaultOfProfile, "the warrant is for another phase than it is filed under: `hostwarrant sign` it again"}, true
	case ExitNotYetValid:
		return Refusal{FaultOfEither, "compare not-before, which `hostwarrant inspect` shows, with the host's clock: skewSeconds of its HostState (kubectl get hoststate)"}, true
	case ExitExpired:
		return Refusal{FaultOfEither, "`hostwarrant fleet` tells whether the warrant or the host's list of signers has ended: `hostwarrant sign` the profile again, or send a signers statement"}, true
	case ExitRollback:
		return Refusal{FaultOfProfile, "its serial is below what ran there or a floor, or too far above: `hostwarrant fleet` shows the host's mark; `hostwarrant sign --serial` the next one"}, true
	case ExitSerialReused:
		return Refusal{FaultOfProfile, "another script ran under this serial: `hostwarrant sign --serial` the next one"}, true
	case ExitState:
		return Refusal{FaultOfEither, "a profile that is new to the host needs a floor: send a floor statement; else `hostwarrant host repair`, on the host as root, says what of its memory is missing or broken"}, true
	case ExitPreflight:
		return Refusal{FaultOfHost, checkHost + ", the trust files and OpenSSH too"}, true
	default:
		return Refusal{}, false
	}
}

// Refused reports whether the code says that the host refused to run the
// script: nothing was run.
func (c ExitCode) Refused() bool {
	_, refused := c.Refusal()
	return refused
}
