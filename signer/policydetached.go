package main

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// readSignatures reads the detached signatures of a file: old is nil where there are none yet.
func readSignatures(path string) (old []byte, all []string, err error) {
	old, err = readRegular(path + ".sig")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, undecided(err)
	}
	return old, blocks(string(old)), nil
}

// cosigned are the signatures of a text after signing.
type cosigned struct {
	all     []string
	at      int   // the place of the own one
	had     int   // how many there were before
	dropped []int // places among those, ascending
}

// addSignature signs a text that others may have signed: a new signature comes last, an older one by the
// same key is replaced. Those of other keys must cover the text, or are dropped with replace.
func (c *cli) addSignature(namespace string, text []byte, have []string, key ssh.Signer, replace bool) (*cosigned, error) {
	s := &cosigned{at: -1, had: len(have)}
	for i, block := range have {
		own, err := standing(namespace, text, block, key.PublicKey())
		if err != nil && replace {
			c.say("note", "signatures[%d] is dropped: %s", i, decision.From(err).What)
		}
		if err != nil && replace || own && s.at >= 0 {
			s.dropped = append(s.dropped, i)
			continue
		}
		// check: SignatureInvalid: whoever signs next must not pass on what no reader will take
		if err != nil {
			return nil, decision.From(err).At(fmt.Sprintf("signatures[%d]", i)).
				Try("--replace drops the signatures that are not of this text; their keys then sign again")
		}
		if own {
			s.at = len(s.all)
		}
		s.all = append(s.all, block)
	}
	// check: SignatureMalformed: readers take no more
	if s.at < 0 && len(s.all) >= quorum.MaxSignatures {
		return nil, decision.Errorf(decision.SignatureMalformed, "there are %d signatures already, and no reader takes more", len(s.all)).
			Try("remove those by keys that are no roots")
	}
	armored, err := sshsig.Sign(c.rand, key, namespace, text)
	if err != nil {
		return nil, err
	}
	if s.at < 0 {
		s.at, s.all = len(s.all), append(s.all, "")
	}
	s.all[s.at] = string(armored)
	return s, nil
}

// standing tells whether a signature is by the own key; one by another must cover the text.
func standing(namespace string, text []byte, block string, key ssh.PublicKey) (own bool, err error) {
	sig, err := sshsig.Parse([]byte(block))
	if err != nil {
		return false, err
	}
	if quorum.Same(sig.PublicKey(), key) {
		return true, nil
	}
	return false, sig.Verify(namespace, text)
}
