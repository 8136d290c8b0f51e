package drift

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// look is what an object was known by when it was as shipped. Between two looks there is time for a guard
// to be taken away, used and put back.
type look struct {
	uid        types.UID
	generation int64
	bundles    string // the caBundles, whose renewal is a change too
}

func lookAt(live *unstructured.Unstructured) look {
	l := look{uid: live.GetUID(), generation: live.GetGeneration()}
	hooks, ok := live.Object["webhooks"].([]any)
	if !ok {
		return l
	}
	for _, hook := range hooks {
		if h, ok := hook.(map[string]any); ok {
			if config, ok := h["clientConfig"].(map[string]any); ok {
				l.bundles += fmt.Sprintln(config["caBundle"])
			}
		}
	}
	return l
}

// key tells the objects apart: all of them are cluster-scoped, and bear their kind where a namespace would stand.
func key(u *unstructured.Unstructured) client.ObjectKey {
	return client.ObjectKey{Namespace: u.GetKind(), Name: u.GetName()}
}

// touched looks at an object that is as shipped, and says whether it was anything else since the last look.
func (c *Checker) touched(live *unstructured.Unstructured) bool {
	now := lookAt(live)
	was, known := c.looks[key(live)]
	if c.looks == nil {
		c.looks = map[client.ObjectKey]look{}
	}
	c.looks[key(live)] = now
	return known && (was.uid != now.uid || was.generation != now.generation && was.bundles == now.bundles)
}

func (c *Checker) forget(shipped *unstructured.Unstructured) { delete(c.looks, key(shipped)) }
