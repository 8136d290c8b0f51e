package admit

import (
	"context"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// maxUnpacked bounds how many objects with embedded content are judged at once: a few KiB of an
// annotation unpack to 8 MiB, with half a million values that are hashed before anybody vouched for
// them, which takes about 50 MiB.
const maxUnpacked = 2

// Unpacking is room for objects with embedded content.
type Unpacking chan struct{}

// NewUnpacking returns the shipped room.
func NewUnpacking() Unpacking { return make(Unpacking, maxUnpacked) }

// embeds reports whether objects of a kind may carry their signed content in an annotation.
func embeds(kind string) bool {
	group := object.GroupOf(kind)
	return group == object.GroupStorage || group == object.GroupKubescape
}

// take waits for room where the kind may have embedded content; release gives it back.
func (u Unpacking) take(ctx context.Context, kind string) (release func(), err error) {
	if u == nil || !embeds(kind) {
		return func() {}, nil
	}
	if err := take(ctx, u); err != nil {
		return nil, err
	}
	return func() { <-u }, nil
}
