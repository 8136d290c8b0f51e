package keyring

import (
	"encoding/asn1"
	"encoding/pem"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// ecKey is what RFC 5915 (SEC 1) writes of a private key, as far as it is needed here.
type ecKey struct {
	Version int
	Private []byte
	Curve   asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
	Public  asn1.BitString        `asn1:"optional,explicit,tag:1"`
}

// onUnknownCurve tells a sound key on a curve that is not read from a damaged file: the library says the
// same of both.
func onUnknownCurve(block *pem.Block) bool {
	curve := curveOf(block)
	switch curve.String() {
	case "", "1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35": // P-256, P-384, P-521
		return false
	default:
		return true
	}
}

// curveOf is the curve that an EC private key names, nil where it names none.
func curveOf(block *pem.Block) asn1.ObjectIdentifier {
	switch block.Type {
	case "EC PRIVATE KEY":
		var key ecKey
		if _, err := asn1.Unmarshal(block.Bytes, &key); err == nil {
			return key.Curve
		}
	case "PRIVATE KEY":
		var key struct {
			Version   int
			Algorithm struct {
				Name   asn1.ObjectIdentifier
				Params asn1.RawValue `asn1:"optional"`
			}
			Private []byte
			Rest    asn1.RawValue `asn1:"optional"`
		}
		ec := asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
		if _, err := asn1.Unmarshal(block.Bytes, &key); err != nil || !key.Algorithm.Name.Equal(ec) {
			return nil
		}
		var curve asn1.ObjectIdentifier
		if _, err := asn1.Unmarshal(key.Algorithm.Params.FullBytes, &curve); err == nil {
			return curve
		}
	}
	return nil
}

func (f *keyFile) unknownCurve() error {
	return &Error{fmt.Sprintf("key %q: %s: its curve is none of P-256, P-384 and P-521", f.path, decision.KeyTypeRefused), usable}
}
