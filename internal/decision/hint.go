package decision

// usualHint is what to do next about an object that is refused by a rule which names nothing of its own.
func usualHint(r Reason) string {
	switch r {
	case Malformed, TooLarge:
		return "mend it, then see: hostwarrant verify FILE --policy POLICY --root ROOTS"
	case Unsigned, SignatureMalformed, SignatureInvalid, Tampered, NotCanonical:
		return "sign again: hostwarrant sign -i FILE --key KEY"
	case StatementRejected:
		return "hostwarrant help statement tells the rules"
	case KindMismatch:
		return "compare the webhook configuration with the shipped one"
	case Internal:
		return "look at the program's log"
	default:
		return ""
	}
}
