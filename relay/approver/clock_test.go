package approver

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClocksMayDifferByAMinute: requests carry the API server's time, tokens the minter's. To the second.
func TestClocksMayDifferByAMinute(t *testing.T) {
	const life = 9 * time.Minute
	for name, tt := range map[string]struct {
		made, now time.Duration // since the token was minted
		denied    string
	}{
		"at once":                                   {0, 0, ""},
		"by an API server a minute behind":          {-time.Minute, 0, ""},
		"by one a second more behind":               {-time.Minute - time.Second, 0, "before its token"},
		"by one a minute ahead, at the last second": {life + time.Minute - time.Second, life - time.Nanosecond, ""},
		"by one a second more ahead":                {life + time.Minute, life - time.Nanosecond, "the time of the token is over"},
		"judged at its end":                         {0, life, "the time of the token is over"},
		"judged just before":                        {0, life - time.Nanosecond, ""},
		"judged by a minter whose clock went back":  {0, -time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			minted := w.now
			w.start(w.csr("first", w.kubelet, func(c *certificatesv1.CertificateSigningRequest) {
				c.CreationTimestamp = metav1.NewTime(minted.Add(tt.made))
			}))
			w.now = minted.Add(tt.now)
			w.reconcile("first")
			if tt.denied != "" {
				w.denied("first", "CSRMismatch", tt.denied)
				return
			}
			w.want("first", "", "")
			if w.stored().Status.Proof == nil {
				t.Error("the host is not asked")
			}
		})
	}
}
