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
	old, err = readFile(path + ".sig")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, undecided(err)
	}
	return old, blocks(string(old)), nil
}

// addSignature gives the signatures of a text after signing, and the place of the own one: a new one
// comes last, an older one by the same key is replaced. Those of other keys must cover the text.
func (c *cli) addSignature(namespace string, text []byte, have []string, key ssh.Signer) (all []string, at int, err error) {
	own, err := sshsig.Sign(c.rand, key, namespace, text)
	if err != nil {
		return nil, 0, err
	}
	at = len(have)
	for i, block := range have {
		sig, err := sshsig.Parse([]byte(block))
		if err == nil && sameKey(sig.PublicKey(), key.PublicKey()) {
			at = i
			continue
		}
		if err == nil {
			err = sig.Verify(namespace, text)
		}
		// check: SignatureInvalid: whoever signs next must not pass on what no reader will take
		if err != nil {
			return nil, 0, decision.From(err).At(fmt.Sprintf("signatures[%d]", i)).Try("remove that signature: it is not of this text")
		}
	}
	all = append(all, have...)
	if at < len(all) {
		all[at] = string(own)
		return all, at, nil
	}
	// check: SignatureMalformed: readers take no more
	if len(all) >= quorum.MaxSignatures {
		return nil, 0, decision.Errorf(decision.SignatureMalformed, "there are %d signatures already, and no reader takes more", len(all)).
			Try("remove those by keys that are no roots")
	}
	return append(all, string(own)), at, nil
}
