package servingsecret

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// lookEvery is how often a Secret that is somebody else's is looked at again.
const lookEvery = 10 * time.Second

// Start runs what serves from the named Secret, once Check lets it use what is there. Until then it
// says why, and nothing is served. A Secret that is not there, or cannot be read now, keeps nothing
// from starting: over Guard nothing is written that should not be.
func Start(ctx context.Context, config *rest.Config, secret types.NamespacedName, log *slog.Logger, run func(context.Context) error) error {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		stored, err := c.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
		if err != nil {
			break
		}
		if err = Check(stored); err == nil {
			break
		}
		log.Error("nothing is served", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
	return run(ctx)
}
