package fragment_test

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestWhatAnAnnotationUnpacksToIsMeasured(t *testing.T) {
	content := []byte(strings.Repeat("0", 1000))
	packed := fragment.Annotations(content, nil, nil, true, testkit.Now())[fragment.AnnotationContent]
	for name, tt := range map[string]struct {
		annotation string
		limit      int64
		want       bool
	}{
		"as much as may be": {packed, 1000, false},
		"a byte more":       {packed, 999, true},
		"none":              {"", 0, false},
		"no base64":         {"%", 0, false},
		"no gzip":           {"aGVsbG8=", 0, false},
	} {
		o := &fragment.Object{}
		o.Annotations = map[string]string{fragment.AnnotationContent: tt.annotation}
		if got := fragment.Unpacks(o, tt.limit); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
