package lint

import "github.com/hostwarrant/hostwarrant/internal/warrant"

type param = warrant.Param

// pins tells whether a matcher leaves only values that the signer named.
func pins(p param) bool {
	return p.Matcher.Kind == warrant.MatchEnum || p.Matcher.Kind == warrant.MatchSHA256
}
