package trustpolicy

// NotEnforced names the parts that the policy gives and that no reader of this
// version acts on yet, so that none of them looks enforced: whoever loads or shows
// a policy says so.
func (p *Policy) NotEnforced() []string {
	return nil // nothing, since the approver acts on hostCA
}
