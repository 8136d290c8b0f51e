package main

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/krl"
)

// readSigners reads an allowed_signers file. A file that cannot be read whole decides nothing.
func readSigners(path string) (*allowedsigners.List, error) {
	text, err := readPublic("-f", path)
	if err != nil {
		return nil, err
	}
	list, err := allowedsigners.Parse(text)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return list, nil
}

// readRevoked reads a KRL or a plain list of keys, and nothing where no file is named. A list that is
// missing decides nothing: it may have been taken away.
func readRevoked(path string) (allowedsigners.Revocations, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readPublic("-r", path)
	if err != nil {
		return nil, err
	}
	list, err := krl.Parse(data)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return list, nil
}
