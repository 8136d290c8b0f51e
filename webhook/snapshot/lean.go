package snapshot

import "github.com/hostwarrant/hostwarrant/internal/object"

// maxLabels bounds the labels of a host, in bytes. The API server does not, but for the 1.5 MiB of the
// whole object, and nobody is asked when labels change: a few hundred such hosts would fill the memory
// of every replica. Honest ones have a few hundred bytes.
const maxLabels = 64 << 10

// forget drops of metadata what no rule reads. Annotations may have 256 KiB: kubectl apply writes the
// whole object into one.
func forget(m *object.Meta) { m.Labels, m.Annotations, m.Finalizers = nil, nil, nil }

// leanHost keeps the labels, by which classes and selectors go; a host that has too many is as one that
// cannot be read.
func leanHost(h *object.Host) *object.Host {
	labels, size := h.Labels, 0
	for key, value := range labels {
		size += len(key) + len(value)
	}
	if size > maxLabels {
		return nil
	}
	forget(&h.Meta)
	h.Labels = labels
	return h
}

func leanClass(c *object.NodeClass) *object.NodeClass {
	forget(&c.Meta)
	return c
}

// leanRun keeps the vars of a run that may still happen: it is judged again.
func leanRun(r *object.HostRun) *object.HostRun {
	forget(&r.Meta)
	if r.Finished {
		r.Vars = nil
	}
	return r
}

// leanStatement keeps text and signatures: later ones are held against it.
func leanStatement(h *object.HostStatement) *object.HostStatement {
	forget(&h.Meta)
	return h
}
