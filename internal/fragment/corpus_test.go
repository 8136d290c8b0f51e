package fragment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The signers of the published artefacts.
const (
	vendor      = "key:162a08d59135652ee095ad2e0d927104c9e4eefe94f4ae844e7387ba1a7352d2"
	operator    = "key:58fd31c363a8fac06d6eb596c2e8c63d5913b4dc4b971ee62579ec41fff78826"
	untrusted   = "key:9dbd23e8819ac29ecac1ab99fed196f4cb2e57890f1ca85d5a5a654d577e5bbf"
	bobVendor   = "key:1b962159c04a8b6dd5825b971d8417a144a1358d9e2f8c14368d14e1ebc67fbd"
	bobOperator = "key:2c6bd5e1e52cd5721c986bde87e84c382984d8d3263ddde7fc89d2e9c90c3fb3"
)

// artefact is what a published object says. Where only the first digits of a digest are
// published, or none, the rest was found by the signature, which covers nothing else.
type artefact struct {
	kind, name, bundle, class, signer, digest string
	set                                       []string
	rules                                     int
}

func artefacts() map[string]artefact {
	const profile, rules = fragment.KindContainerProfile, fragment.KindRules
	return map[string]artefact{
		"node-agent/fragments/bundle37-base-signed.yaml": {
			profile, "bundle37-base", "bundle37", "base", vendor,
			"f8da0b152166331932e2ef25576b91f81c4e9d5189a3c095ddf082e1b00732ff",
			[]string{"architectures", "execs", "syscalls", "labelSelector"},
			0,
		},
		"node-agent/fragments/bundle37-admission-signed.yaml": {
			profile, "bundle37-admission", "bundle37", "admission", operator,
			"aaceb6befba5ac1547d9e2d565d7e1de8c1e5aacd517012dea5bcf181bcbe43f",
			[]string{"ingress"},
			0,
		},
		"node-agent/fragments/bundle37-overlay-signed.yaml": {
			profile, "bundle37-overlay", "bundle37", "overlay", operator,
			"1513b0723b51e5f1b49aea750d72bbfbff9d1039a6dd3c28b4cad901446acb8a",
			[]string{"execs"},
			0,
		},
		"node-agent/rules/cluster-baseline-signed.yaml": {
			rules, "ct-base-rules", "", "base", vendor,
			"f1142f3e9da51aa044cf6cb3cf25342102d17ec4ef9194ea305829cfb172fd18", nil, 29,
		},
		"node-agent/rules/namespace-override-signed.yaml": {
			rules, "ct-bundle37-overlay-rules", "bundle37", "overlay", operator,
			"08993a1bbcc49b542df9555ac996f7ac46d1a2a07577f6e47551f7575a96fb08", nil, 1,
		},
		"node-agent/rules/untrusted-signer-signed.yaml": {
			rules, "ct-rogue-rules", "", "base", untrusted,
			"9a4bdbd4ba711caecabf87248770fd7e826b3a9ebd555d7af4fccd06efe2b7e6", nil, 1,
		},
		"bob/baseline-rules-signed.yaml": {
			rules, "default-rules", "", "base", bobOperator,
			"f1170921b4c2c798e7b1d430a5f3e87b502e5a9ed0cfd36447dbe499031145f8", nil, 31,
		},
		"bob/client-SBOB-signed.yaml": {
			profile, "redis-client", "", "", bobVendor,
			"4af618152423b9d4b7898fd78788126368d0b47861912a5ddc6717518f3fcd6d",
			[]string{"architectures", "execs", "opens", "imageID", "imageTag", "labelSelector", "egress"},
			0,
		},
		"bob/redis-healed-signed.yaml": {
			profile, "redis", "", "", bobVendor,
			"1b264254fac39c97f19a9a220eb31b6186d65dc9f4a05add181dbe5bd194aef2",
			[]string{"architectures", "capabilities", "execs", "opens", "imageID", "imageTag", "labelSelector", "ingress"},
			0,
		},
	}
}

// Each published signed object verifies, with the content, signer and digest that are published of it.
func TestPublishedArtefacts(t *testing.T) {
	for file, want := range artefacts() {
		t.Run(file, func(t *testing.T) {
			o := published(t, file)
			f, err := fragment.Verify(o)
			if err != nil {
				t.Fatal(err)
			}
			got := artefact{f.Kind, f.Name, f.Bundle, f.Class, f.Signer, f.Digest, nil, 0}
			if f.Profile != nil {
				got.set = f.Profile.Set()
			}
			if f.Rules != nil {
				got.rules = len(f.Rules.Rules)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(artefact{})); diff != "" {
				t.Error(diff)
			}
			if len(f.Diverges) > 0 {
				t.Errorf("the stored spec differs in %v", f.Diverges)
			}
			agree(t, publishedText(t, file))
		})
	}
}

// What the format's own hash cannot tell apart, the strict profile refuses; of array order Bytes tells.
func TestMalleable(t *testing.T) {
	for file, want := range map[string]decision.Reason{
		"cross-kind-rules":     decision.KindMismatch,
		"dup-execs-leftover":   decision.NotCanonical,
		"dup-metadata-version": decision.NotCanonical,
		"dup-spec":             decision.NotCanonical,
		"ignored-extra-key":    decision.NotCanonical,
		"null-as-string":       decision.Tampered,
		"object-as-array":      decision.Tampered,
		"reordered-args":       decision.Verified,
		"reordered-array":      decision.Verified,
	} {
		t.Run(file, func(t *testing.T) {
			_, err := fragment.Verify(published(t, "malleable/"+file+".yaml"))
			testkit.WantReason(t, err, want)
			agree(t, publishedText(t, "malleable/"+file+".yaml"))
		})
	}
}

// What was published without a signature is no fragment; the digests are those
// from which the published Merkle root 2a91e677… follows.
func TestPublishedUnsignedFragments(t *testing.T) {
	for file, want := range map[string]string{
		"frag-base-redis":             "45c5c5cbbb99ae8cbcf9dd210ae47c9c4859e1e1435f51d1a19dcea580fec5b2",
		"frag-overlay-ops":            "1e6fe5c25d5c013914b13902eca636ff7b8ec8b8e140d9e908291d04d12a859f",
		"frag-admission-redis-client": "f07b9233b53196d8117522a9d6d3a2598e9dfc1ea1d14594aec324dc1c723f7b",
	} {
		o := published(t, "bob/fragments-unsigned/"+file+".yaml")
		_, err := fragment.Verify(o)
		testkit.WantReason(t, err, decision.Unsigned)
		content, err := fragment.Content(o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fragment.Digest(content); err != nil || got != want {
			t.Errorf("%s: %s, %v", file, got, err)
		}
	}
}

// Array order is not signed: the two differ in Bytes alone, by which the first form that was seen is kept.
func TestReorderedContentDiffersInBytes(t *testing.T) {
	for changed, original := range map[string]string{
		"malleable/reordered-args.yaml":  "bob/client-SBOB-signed.yaml",
		"malleable/reordered-array.yaml": "node-agent/fragments/bundle37-base-signed.yaml",
	} {
		a, err := fragment.Verify(published(t, original))
		if err != nil {
			t.Fatal(err)
		}
		b, err := fragment.Verify(published(t, changed))
		if err != nil {
			t.Fatal(err)
		}
		if a.Digest != b.Digest || a.Bytes == b.Bytes {
			t.Errorf("%s: digests %s and %s, bytes %s and %s", changed, a.Digest, b.Digest, a.Bytes, b.Bytes)
		}
	}
}
