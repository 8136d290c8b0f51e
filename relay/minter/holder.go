package minter

import "context"

// Holder is Book.Holder, once this minter has taken over what an earlier one issued: an error means that
// it does not know yet.
func (m *Minter) Holder(ctx context.Context, id string) (Entry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.adopt(ctx); err != nil {
		return Entry{}, false, err
	}
	e, ok := m.Book.Holder(id)
	return e, ok, nil
}
