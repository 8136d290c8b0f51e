package lint_test

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

func TestParseError(t *testing.T) {
	check(t, "parse-error", map[string]example{
		"an if that does not end":                {text: strict + "if true; then\n", want: []string{"2 error"}},
		"a quote that does not end":              {text: "echo 'a\n", want: []string{"1 error"}},
		"words of another shell":                 {text: "echo ${(f)x}\n", want: []string{"1 error"}},
		"a here-document without end":            {text: "cat <<EOF\nx\n", want: []string{"1 error"}},
		"text that is far too long":              {text: strings.Repeat("a", 4*script.MaxCharacters+1), want: []string{"1 error"}},
		"nothing":                                {text: ""},
		"a comment":                              {text: "# hello"},
		"arrays, tests and process substitution": {text: "a=(1 2)\n[[ ${a[0]} == 1 ]] && cat <(echo x)\n"},
	})
}

func TestUnsignable(t *testing.T) {
	check(t, "unsignable", map[string]example{
		"a template":           {text: strict + "echo a {{ .Vars.x }}\n", want: []string{"2 error"}},
		"a NUL":                {text: "true\x00\n", want: []string{"1 error"}},
		"not UTF-8":            {text: "echo \xff\n", want: []string{"1 error"}},
		"too long":             {text: strings.Repeat("# a\n", script.MaxCharacters/4) + "#", want: []string{"1 error"}},
		"far too long":         {text: strings.Repeat("a", 4*script.MaxCharacters+1), want: []string{"1 error"}},
		"braces apart":         {text: "{ { true; }; }\n"},
		"as long as it may be": {text: strings.Repeat("# a\n", script.MaxCharacters/4)},
	})
}

func TestCarriageReturn(t *testing.T) {
	check(t, "carriage-return", map[string]example{
		"CR LF":              {text: "set -euo pipefail\r\ntrue\r\n", want: []string{"1 error"}},
		"CR LF further down": {text: strict + "true\r\n", want: []string{"2 error"}},
		"a CR as an escape":  {text: strict + `printf 'a\r\n'` + "\n"},
	})
}

func TestForeignShebang(t *testing.T) {
	check(t, "foreign-shebang", map[string]example{
		"python":             {text: "#!/usr/bin/python3\nimport os\n", want: []string{"1 error"}},
		"python through env": {text: "#!/usr/bin/env -S python3 -u\n", want: []string{"1 error"}},
		"zsh":                {text: "#!/bin/zsh\n", want: []string{"1 error"}},
		"an empty one":       {text: "#!\ntrue\n", want: []string{"1 error"}},
		"bash":               {text: "#!/bin/bash -eu\n"},
		"bash through env":   {text: "#!/usr/bin/env -S X=1 bash\n"},
		"sh":                 {text: "#! /bin/sh\n"},
		"none":               {text: "true\n"},
		"further down":       {text: "true\n#!/usr/bin/python3\n"},
	})
}

func TestMissingStrictMode(t *testing.T) {
	check(t, "missing-strict-mode", map[string]example{
		"none":                      {text: "#!/bin/bash -eu\n\ntrue-ish\n", want: []string{"3 warning"}},
		"no pipefail":               {text: "set -eu\nls\n", want: []string{"2 warning"}},
		"no nounset":                {text: "set -eo pipefail\nls\n", want: []string{"2 warning"}},
		"no errexit":                {text: "set -uo pipefail\nls\n", want: []string{"2 warning"}},
		"too late":                  {text: "ls\nset -euo pipefail\n", want: []string{"1 warning"}},
		"behind a substitution":     {text: "a=$(ls)\nset -euo pipefail\n", want: []string{"1 warning"}},
		"in a branch":               {text: "if true; then set -euo pipefail; fi\nls\n", want: []string{"1 warning"}},
		"turned off instead":        {text: "set +euo pipefail\nls\n", want: []string{"2 warning"}},
		"an operand, not an option": {text: "set -- -euo pipefail\nls\n", want: []string{"2 warning"}},
		"behind a pipe":             {text: "set -euo pipefail | cat\nls\n", want: []string{"1 warning"}},

		"at once":                 {text: "set -euo pipefail\nls\n"},
		"with x and E":            {text: "set -Eeuxo pipefail\nls\n"},
		"in long words":           {text: "set -o errexit -o nounset -o pipefail\nls\n"},
		"in two words":            {text: "set -eu -o pipefail\nls\n"},
		"one by one":              {text: "set -e\nset -u\nset -o pipefail\nls\n"},
		"pipefail first":          {text: "set -o pipefail -eu\nls\n"},
		"o with letters after":    {text: "set -oeu pipefail\nls\n"},
		"behind what cannot fail": {text: "#!/bin/bash\numask 077\nexport LC_ALL=C\nf() { ls; }\nreadonly x=1\ny=2\nset -euo pipefail\nls\n"},
		"no commands":             {text: "#!/bin/bash\n# nothing\n"},
		"set and nothing else":    {text: "set -e\n"},
	})
}

func TestEval(t *testing.T) {
	check(t, "eval", map[string]example{
		"eval":                          {text: strict + `eval "$x"` + "\n", want: []string{"2 warning"}},
		"eval through builtin":          {text: strict + `builtin eval "$x"` + "\n", want: []string{"2 warning"}},
		"eval in a substitution":        {text: strict + `y=$(eval "$x")` + "\n", want: []string{"2 warning"}},
		"eval of a parameter":           {text: strict + `eval "set -- $KPSSH_VAR_args"` + "\n", want: []string{"2 error"}},
		"a parameter in a shell's text": {text: strict + `sudo bash -c "useradd $KPSSH_VAR_user"` + "\n", want: []string{"2 error"}},
		"the same with a bundle":        {text: strict + `sh -ec "useradd ${KPSSH_VAR_user:-x}"` + "\n", want: []string{"2 error"}},

		"a parameter as an argument": {text: strict + `bash -c 'useradd "$1"' -- "$KPSSH_VAR_user"` + "\n"},
		"only whether it is set":     {text: strict + `sh -c "echo ${KPSSH_VAR_x:+yes}"` + "\n"},
		"the word alone":             {text: strict + "echo eval; grep eval x\n"},
		"a script":                   {text: strict + `bash "$KPSSH_VAR_script"` + "\n"},
	})
}

func TestPipeToShell(t *testing.T) {
	check(t, "pipe-to-shell", map[string]example{
		"curl to sh":        {text: strict + "curl -fsSL https://x | sh\n", want: []string{"2 error"}},
		"curl to sudo bash": {text: strict + "curl x | sudo -E bash -\n", want: []string{"2 error"}},
		"wget to bash -s":   {text: strict + "wget -qO- x | bash -s -- --yes\n", want: []string{"2 error"}},
		"with tee between":  {text: strict + "curl x | tee log | sh -e\n", want: []string{"2 error"}},
		"from a block":      {text: strict + "{ echo set -e; curl x; } | sh\n", want: []string{"2 error"}},
		"to python":         {text: strict + "curl x | python3 -\n", want: []string{"2 error"}},
		"to perl":           {text: strict + "curl x | perl\n", want: []string{"2 error"}},
		"with stderr":       {text: strict + "curl x |& sh\n", want: []string{"2 error"}},
		"bash <(curl)":      {text: strict + "bash <(curl -s x) --yes\n", want: []string{"2 error"}},
		"source <(curl)":    {text: strict + "source <(curl -s x)\n", want: []string{"2 error"}},
		". <(wget)":         {text: strict + ". <(wget -qO- x)\n", want: []string{"2 error"}},
		"sh -c $(curl)":     {text: strict + `sh -c "$(curl -fsSL x)"` + "\n", want: []string{"2 error"}},
		"eval $(curl)":      {text: strict + `eval "$(curl -s x)"` + "\n", want: []string{"2 error"}},
		"bash <<< $(curl)":  {text: strict + `bash <<< "$(curl -s x)"` + "\n", want: []string{"2 error"}},
		"bash < <(curl)":    {text: strict + "bash < <(curl -s x)\n", want: []string{"2 error"}},
		"in a function":     {text: strict + "f() {\n  curl x | sh\n}\n", want: []string{"3 error"}},
		"a path before it":  {text: strict + "/usr/bin/curl x | /bin/sh\n", want: []string{"2 error"}},

		"to gpg":                    {text: strict + "curl x | gpg --dearmor -o k\n"},
		"to tar":                    {text: strict + "curl x | tar xz\n"},
		"to tee as root":            {text: strict + "curl x | sudo tee /etc/x\n"},
		"data for a shell's text":   {text: strict + "curl x | sh -c 'cat >f'\n"},
		"data for a script":         {text: strict + "curl x | bash filter.sh\n"},
		"data for python -c":        {text: strict + "curl x | python3 -c 'import sys'\n"},
		"data for python -m":        {text: strict + "curl x | python3 -m json.tool\n"},
		"data for perl -ne":         {text: strict + "curl x | perl -ne print\n"},
		"a local script":            {text: strict + "cat x | sh\n"},
		"a download as an argument": {text: strict + `bash run.sh "$(curl x)"` + "\n"},
		"the shell feeds curl":      {text: strict + "sh x | curl -T - y\n"},
		"words in a message":        {text: strict + "echo 'curl x | sh'\n"},
	})
}

func TestUncheckedDownload(t *testing.T) {
	check(t, "unchecked-download", map[string]example{
		"curl -o":            {text: strict + "curl -fsSL x -o /usr/local/bin/y\n", want: []string{"2 warning"}},
		"curl -fsSLo":        {text: strict + "curl -fsSLo y x\n", want: []string{"2 warning"}},
		"curl -O":            {text: strict + "curl -fO x\n", want: []string{"2 warning"}},
		"curl --output=":     {text: strict + "curl --output=y x\n", want: []string{"2 warning"}},
		"curl to a file":     {text: strict + "curl x > y\n", want: []string{"2 warning"}},
		"wget":               {text: strict + "wget x\n", want: []string{"2 warning"}},
		"wget -O":            {text: strict + "wget -qO y x\n", want: []string{"2 warning"}},
		"gpg without verify": {text: strict + "curl -o y x\ngpg --dearmor y\n", want: []string{"2 warning"}},

		"a digest follows":    {text: strict + "curl -o y x\necho \"$sum  y\" | sha256sum -c\n"},
		"a signature follows": {text: strict + "curl -o y x\ngpg --verify y.asc y\n"},
		"curl to stdout":      {text: strict + "curl -sS x\n"},
		"curl with a method":  {text: strict + "curl -XPOST x\n"},
		"curl to nowhere":     {text: strict + "curl -o /dev/null x; curl x >/dev/null; curl -o - x\n"},
		"wget to stdout":      {text: strict + "wget -qO- x; wget -O - x\n"},
	})
}

func TestUnquotedParameter(t *testing.T) {
	check(t, "unquoted-parameter", map[string]example{
		"an argument":                       {text: strict + "echo $KPSSH_TAINTS\n", want: []string{"2 warning"}},
		"in braces":                         {text: strict + "echo --x=${KPSSH_TAINTS}\n", want: []string{"2 warning"}},
		"with a default":                    {text: strict + "echo ${KPSSH_TAINTS:-none}\n", want: []string{"2 warning"}},
		"as a default":                      {text: strict + "echo ${x:-$KPSSH_TAINTS}\n", want: []string{"2 warning"}},
		"cut":                               {text: strict + "echo ${KPSSH_TAINTS%%,*}\n", want: []string{"2 warning"}},
		"in a list":                         {text: strict + "for t in $KPSSH_TAINTS; do :; done\n", want: []string{"2 warning"}},
		"in an array":                       {text: strict + "a=($KPSSH_TAINTS)\n", want: []string{"2 warning"}},
		"as a file":                         {text: strict + "echo > $KPSSH_VAR_file\n", want: []string{"2 warning"}},
		"in a test":                         {text: strict + "[ -n $KPSSH_TAINTS ]\n", want: []string{"2 warning"}},
		"in a substitution":                 {text: strict + "echo \"$(echo $KPSSH_TAINTS)\"\n", want: []string{"2 warning"}},
		"as a command":                      {text: strict + "$KPSSH_VAR_cmd\n", want: []string{"2 warning"}},
		"export of its value":               {text: strict + "export $KPSSH_VAR_x\n", want: []string{"2 warning"}},
		"between quotes":                    {text: strict + "echo \"a\"$KPSSH_TAINTS\"b\"\n", want: []string{"2 warning"}},
		"twice":                             {text: strict + "echo $KPSSH_TAINTS\\\n  $KPSSH_TAINTS\n", want: []string{"2 warning", "3 warning"}},
		"in a here-document's substitution": {text: strict + "cat <<EOF\n$(echo $KPSSH_TAINTS)\nEOF\n", want: []string{"3 warning"}},

		"quoted":                  {text: strict + `echo "$KPSSH_TAINTS" "a${KPSSH_TAINTS}b"` + "\n"},
		"an assignment":           {text: strict + "x=$KPSSH_TAINTS; y=a${KPSSH_TAINTS}\n"},
		"an exported assignment":  {text: strict + "export x=$KPSSH_TAINTS\nlocal_() { local y=$KPSSH_TAINTS; }\n"},
		"for one command":         {text: strict + "X=$KPSSH_TAINTS cmd\n"},
		"in [[":                   {text: strict + "[[ $KPSSH_TAINTS == a ]]\n"},
		"a case word":             {text: strict + "case $KPSSH_TAINTS in $KPSSH_NODE_LABELS) ;; esac\n"},
		"in a here-document":      {text: strict + "cat <<EOF\n$KPSSH_TAINTS\nEOF\n"},
		"in a here string":        {text: strict + "cat <<< $KPSSH_TAINTS\n"},
		"its length":              {text: strict + "echo ${#KPSSH_TAINTS}\n"},
		"whether it is set":       {text: strict + "cmd ${KPSSH_TAINTS:+--taints} ${KPSSH_TAINTS+x}\n"},
		"checked by a colon":      {text: strict + ": ${KPSSH_TAINTS:?}\n"},
		"a default within quotes": {text: strict + `echo "${x:-$KPSSH_TAINTS}"` + "\n"},
		"a pattern":               {text: strict + `echo "${x#$KPSSH_TAINTS}"` + "\n"},
		"in single quotes":        {text: strict + "echo '$KPSSH_TAINTS' \\$KPSSH_TAINTS\n"},
		"another variable":        {text: strict + "echo $TAINTS\n"},
	})
}

func TestArithmeticParameter(t *testing.T) {
	check(t, "arithmetic-parameter", map[string]example{
		"an expansion":     {text: strict + "x=$(( $KPSSH_VAR_n + 1 ))\n", want: []string{"2 warning"}},
		"a command":        {text: strict + "(( KPSSH_VAR_n > 1 ))\n", want: []string{"2 warning"}},
		"a bare name":      {text: strict + "x=$((KPSSH_VAR_n+1))\n", want: []string{"2 warning"}},
		"a number test":    {text: strict + "[[ $KPSSH_VAR_n -gt 1 ]]\n", want: []string{"2 warning"}},
		"a slice":          {text: strict + `echo "${x:$KPSSH_VAR_n}"` + "\n", want: []string{"2 warning"}},
		"let":              {text: strict + `let x=KPSSH_VAR_n` + "\n", want: []string{"2 warning"}},
		"a text test":      {text: strict + "[[ $KPSSH_VAR_n == 1 ]]\n"},
		"a plain test":     {text: strict + `[ "$KPSSH_VAR_n" -gt 1 ]` + "\n"},
		"another variable": {text: strict + "x=$((n+1))\n"},
		"its length":       {text: strict + "x=$((${#KPSSH_VAR_n}+1))\n"},
	})
}

func TestTraceSecrets(t *testing.T) {
	leak := `echo "$KPSSH_BOOTSTRAP_TOKEN"`
	check(t, "trace-secrets", map[string]example{
		"from the start":                           {text: lines("set -euxo pipefail", leak), want: []string{"1 error"}},
		"by the long word":                         {text: lines("set -euo pipefail", "set -o xtrace", leak), want: []string{"2 error"}},
		"a check prints it too":                    {text: lines("set -euxo pipefail", `: "${KPSSH_BOOTSTRAP_TOKEN:?}"`), want: []string{"1 error"}},
		"a secret of a node class":                 {phase: script.Install, text: lines("set -x", `echo "$KPSSH_SECRET_KEY"`), want: []string{"1 error"}},
		"through a variable":                       {text: lines("t=$KPSSH_BOOTSTRAP_TOKEN", "set -x", `echo "$t"`), want: []string{"2 error"}},
		"through two":                              {text: lines("t=$(printf %s \"$KPSSH_BOOTSTRAP_TOKEN\" | base64)", "export u=x$t", "set -x", `echo "$u"`), want: []string{"3 error"}},
		"in a test":                                {text: lines("set -x", `[[ $KPSSH_BOOTSTRAP_TOKEN == x ]]`), want: []string{"1 error"}},
		"in an assignment":                         {text: lines("set -x", `t=$KPSSH_BOOTSTRAP_TOKEN`), want: []string{"1 error"}},
		"in a substitution within a here-document": {text: lines("set -x", "cat <<EOF", "$("+leak+")", "EOF"), want: []string{"1 error"}},
		"in a function":                            {text: lines("f() { "+leak+"; }", "set -x", "f"), want: []string{"2 error"}},
		"on in a branch":                           {text: lines("if x; then set -x; fi", leak), want: []string{"1 error"}},
		"on behind &&":                             {text: lines("[ -n \"$DEBUG\" ] && set -x", leak), want: []string{"1 error"}},
		"on in a function":                         {text: lines("dbg() { set -x; }", "dbg", leak), want: []string{"1 error"}},
		"on at the end of a loop":                  {text: lines("while x; do", leak, "set -x", "done"), want: []string{"3 error"}},

		"off before, on after":    {text: lines("set -x", "set +x", leak), want: []string{"1 note"}},
		"in a here-document":      {text: lines("set -x", "umask 077", "cat >f <<EOF", "$KPSSH_BOOTSTRAP_TOKEN", "EOF"), want: []string{"1 note"}},
		"in a branch that exits":  {text: lines("if x; then set -x; ls; exit 0; fi", leak), want: []string{"1 note"}},
		"in a subshell":           {text: lines("( set -x; ls )", leak), want: []string{"1 note"}},
		"behind a pipe":           {text: lines("set -x | cat", leak), want: []string{"1 note"}},
		"only whether it is set":  {text: lines("set -x", `[ -n "${KPSSH_BOOTSTRAP_TOKEN:+x}" ]`), want: []string{"1 note"}},
		"join is given the token": {text: lines("set -x", "ls"), want: []string{"1 note"}},

		"leave is given no secret": {phase: script.Leave, text: lines("set -euxo pipefail", "ls")},
		"not traced":               {text: lines("set -euo pipefail", leak)},
		"turned off only":          {text: lines("set +x", leak)},
		"an operand":               {text: lines("set -- -x", leak)},
	})
}

func TestWorldReadableSecret(t *testing.T) {
	here := lines("cat > /etc/f <<EOF", "$KPSSH_BOOTSTRAP_TOKEN", "EOF")
	check(t, "world-readable-secret", map[string]example{
		"a here-document":           {text: here, want: []string{"1 error"}},
		"echo":                      {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" > /etc/f`), want: []string{"1 error"}},
		"appended":                  {text: lines(`printf %s "$KPSSH_BOOTSTRAP_TOKEN" >> /etc/f`), want: []string{"1 error"}},
		"through tee":               {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" | sudo tee /etc/f >/dev/null`), want: []string{"1 error"}},
		"through base64":            {text: lines(`echo "$KPSSH_SECRET_X" | base64 -d > /etc/f`), want: []string{"1 error"}},
		"a here string":             {text: lines(`tee /etc/f <<< "$KPSSH_BOOTSTRAP_TOKEN"`), want: []string{"1 error"}},
		"from a block":              {text: lines("{", "echo a", `echo "$KPSSH_BOOTSTRAP_TOKEN"`, "} > /etc/f"), want: []string{"4 error"}},
		"substituted":               {text: lines("cat > /etc/f <<EOF", "$(printf %s \"$KPSSH_BOOTSTRAP_TOKEN\" | base64)", "EOF"), want: []string{"1 error"}},
		"through a variable":        {text: lines("t=$KPSSH_BOOTSTRAP_TOKEN", `echo "$t" > /etc/f`), want: []string{"2 error"}},
		"chmod comes too late":      {text: here + "chmod 600 /etc/f\n", want: []string{"1 warning"}},
		"chmod of another file":     {text: here + "chmod 600 /etc/g\n", want: []string{"1 error"}},
		"chmod that hides nothing":  {text: "chmod 644 /etc/f\n" + here, want: []string{"2 error"}},
		"umask in a subshell above": {text: "( umask 077 )\n" + here, want: []string{"2 error"}},
		"umask in one branch":       {text: "if x; then umask 077; fi\n" + here, want: []string{"2 error"}},
		"umask taken back":          {text: "umask 077\numask 022\n" + here, want: []string{"3 error"}},
		"umask for the group only":  {text: "umask 020\n" + here, want: []string{"2 error"}},
		"in shared memory":          {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" > /dev/shm/x`), want: []string{"1 error"}},

		"umask before":               {text: "umask 077\n" + here},
		"umask in letters":           {text: "umask u=rwx,go=\n" + here},
		"umask in the same subshell": {text: "(\numask 0077\n" + here + ")\n"},
		"made by install":            {text: "install -m 600 /dev/null /etc/f\n" + here},
		"made by install, bundled":   {text: "install -D -m0600 /dev/null \"/etc/f\"\n" + here},
		"chmod before":               {text: "touch /etc/f\nchmod go-rwx /etc/f\n" + here},
		"in a private directory":     {text: "install -d -m 0700 /etc/d\n" + strings.ReplaceAll(here, "/etc/f", "/etc/d/f")},
		"made by mktemp":             {text: "f=$(mktemp)\n" + strings.ReplaceAll(here, "/etc/f", `"$f"`)},
		"below mktemp -d":            {text: "d=\"$(mktemp -d)\"\n" + strings.ReplaceAll(here, "/etc/f", `"${d}/f"`)},
		"installed from stdin":       {text: lines("install -m 600 /dev/stdin /etc/f <<EOF", "$KPSSH_BOOTSTRAP_TOKEN", "EOF")},
		"a quoted here-document":     {text: lines("cat > /etc/f <<'EOF'", "$KPSSH_BOOTSTRAP_TOKEN", "EOF")},
		"no secret":                  {text: lines("cat > /etc/f <<EOF", "$KPSSH_NODE_NAME", "EOF")},
		"to nowhere":                 {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" > /dev/null`)},
		"only its digest":            {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" | sha256sum > /etc/f`)},
		"what another program says":  {text: lines(`curl -H "Authorization: $KPSSH_BOOTSTRAP_TOKEN" x > /etc/f`)},
		"whether it is set":          {text: lines(`echo "${KPSSH_BOOTSTRAP_TOKEN:+yes}" > /etc/f`)},
		"only errors go to a file":   {text: lines(`echo "$KPSSH_BOOTSTRAP_TOKEN" 2> /etc/f`)},
	})
}

func TestSecretArgument(t *testing.T) {
	check(t, "secret-argument", map[string]example{
		"a flag":                          {text: lines(`kubeadm join --token "$KPSSH_BOOTSTRAP_TOKEN" x`), want: []string{"1 warning"}},
		"a header":                        {text: lines(`curl -H "Authorization: Bearer ${KPSSH_SECRET_T}" x`), want: []string{"1 warning"}},
		"through a variable":              {text: lines("t=$KPSSH_BOOTSTRAP_TOKEN", `kubeadm join --token "$t"`), want: []string{"2 warning"}},
		"a builtin's name run by another": {text: lines(`sudo echo "$KPSSH_BOOTSTRAP_TOKEN"`), want: []string{"1 warning"}},
		"in a substitution":               {text: lines(`x=$(openssl passwd "$KPSSH_SECRET_T")`), want: []string{"1 warning"}},
		"once for a command":              {text: lines(`x "$KPSSH_SECRET_T" "$KPSSH_SECRET_T"`), want: []string{"1 warning"}},

		"a builtin":          {text: lines(`printf %s "$KPSSH_BOOTSTRAP_TOKEN" | x`, `[ -n "$KPSSH_BOOTSTRAP_TOKEN" ]`, `[[ -n $KPSSH_BOOTSTRAP_TOKEN ]]`)},
		"a function":         {text: lines(`f() { :; }`, `f "$KPSSH_BOOTSTRAP_TOKEN"`)},
		"a here-document":    {text: lines("x <<EOF", "$KPSSH_BOOTSTRAP_TOKEN", "EOF")},
		"a here string":      {text: lines(`x <<< "$KPSSH_BOOTSTRAP_TOKEN"`)},
		"in the environment": {text: lines(`T="$KPSSH_BOOTSTRAP_TOKEN" x`)},
		"whether it is set":  {text: lines(`x ${KPSSH_BOOTSTRAP_TOKEN:+--token-given}`)},
		"no secret":          {text: lines(`x "$KPSSH_NODE_NAME"`)},
	})
}

func TestFixedTmpName(t *testing.T) {
	check(t, "fixed-tmp-name", map[string]example{
		"an argument":            {text: strict + "curl -o /tmp/nodeadm x\n", want: []string{"2 warning"}},
		"a redirection":          {text: strict + "echo > /var/tmp/x\n", want: []string{"2 warning"}},
		"an assignment":          {text: strict + "f=/tmp/x\n", want: []string{"2 warning"}},
		"a flag":                 {text: strict + "tar --file=/tmp/x\n", want: []string{"2 warning"}},
		"the process id":         {text: strict + "echo > /tmp/x.$$\n", want: []string{"2 warning"}},
		"a parameter":            {text: strict + `cp a "/tmp/$KPSSH_NODE_NAME"` + "\n", want: []string{"2 warning"}},
		"a name and a parameter": {text: strict + `cp a "/tmp/x-$KPSSH_NODE_NAME.$$"` + "\n", want: []string{"2 warning"}},
		"a fixed directory":      {text: strict + `cp a "/tmp/d/$x"` + "\n", want: []string{"2 warning"}},
		"in quotes":              {text: strict + `cp a '/tmp/x'` + "\n", want: []string{"2 warning"}},
		"once for each name":     {text: strict + "cp a /tmp/x\ncp /tmp/x b\ncp /tmp/y c\n", want: []string{"2 warning", "4 warning"}},

		"mktemp":                            {text: strict + "f=$(mktemp /tmp/x.XXXXXX)\n"},
		"a name from mktemp":                {text: strict + `cp a "$d/x"` + "\n"},
		"a name half of which nobody knows": {text: strict + `cp a "/tmp/x.$$.$(uuidgen)"; cp a "/tmp/x.$r"` + "\n"},
		"a name nobody knows":               {text: strict + `cp a "/tmp/$name"` + "\n"},
		"the directory itself":              {text: strict + "cd /tmp; ls /tmp/\n"},
		"removing":                          {text: strict + "rm -f /tmp/x; rm -rf /tmp/*\n"},
		"another tmp":                       {text: strict + "cp a /srv/tmp/x; cp a /tmpfoo/x\n"},
		"a message":                         {text: strict + "echo /tmp/x\n"},
	})
}

func TestHeldStdout(t *testing.T) {
	check(t, "held-stdout", map[string]example{
		"a child":                 {text: strict + "sleep 9 &\n", want: []string{"2 warning"}},
		"nohup":                   {text: strict + "nohup daemon &\n", want: []string{"2 warning"}},
		"only stdout goes away":   {text: strict + "daemon >/dev/null &\n", want: []string{"2 warning"}},
		"only stderr goes away":   {text: strict + "daemon 2>/dev/null &\n", want: []string{"2 warning"}},
		"in the wrong order":      {text: strict + "daemon 2>&1 >/dev/null &\n", want: []string{"2 warning"}},
		"a subshell":              {text: strict + "( sleep 9; reboot ) &\n", want: []string{"2 warning"}},
		"half of a list":          {text: strict + "{ a >/dev/null 2>&1; b; } &\n", want: []string{"2 warning"}},
		"setsid holds it as well": {text: strict + "setsid daemon & disown\n", want: []string{"2 warning"}},
		"waited for too early":    {text: strict + "wait\nsleep 9 &\n", want: []string{"3 warning"}},

		"a pipeline that keeps stderr": {text: strict + "daemon | logger >/dev/null 2>&1 &\n", want: []string{"2 warning"}},
		"a pipeline":                   {text: strict + "daemon 2>/dev/null | logger >/dev/null 2>&1 &\n"},
		"a pipeline of both":           {text: strict + "daemon |& logger >/dev/null 2>&1 &\n"},
		"a block whose stderr goes":    {text: strict + "{ a >x; b >y; } 2>/dev/null &\n"},

		"both go away":              {text: strict + "daemon >/dev/null 2>&1 &\n"},
		"both at once":              {text: strict + "daemon &>/var/log/x &\n"},
		"both, each":                {text: strict + "daemon >>/var/log/x 2>>/var/log/y &\n"},
		"closed":                    {text: strict + "daemon >&- 2>&- &\n"},
		"nohup and both":            {text: strict + "nohup daemon >/dev/null 2>&1 </dev/null &\n"},
		"waited for":                {text: strict + "sleep 9 &\nwait\n"},
		"the subshell's go away":    {text: strict + "( sleep 9; reboot ) >/dev/null 2>&1 &\n"},
		"all of a list":             {text: strict + "{ a >/dev/null 2>&1; b >/dev/null 2>&1; } &\n"},
		"a block around sends both": {text: strict + "{ sleep 9 & } >/dev/null 2>&1\n"},
		"the script's own go away":  {text: strict + "exec >/var/log/x 2>&1\nsleep 9 &\n"},
		"systemd-run":               {text: strict + "systemd-run --on-active=5 reboot\n"},
		"and":                       {text: strict + "a && b\n"},
	})
}

func TestOwnDirectory(t *testing.T) {
	check(t, "own-directory", map[string]example{
		"removing":              {text: strict + "rm -rf /etc/kpssh\n", want: []string{"2 error"}},
		"removing below":        {text: strict + "rm -f /opt/kpssh/kpssh-shim\n", want: []string{"2 error"}},
		"removing above":        {text: strict + "rm -rf /opt\n", want: []string{"2 error"}},
		"removing all of above": {text: strict + "rm -rf /opt/*\n", want: []string{"2 error"}},
		"a redirection":         {text: strict + "echo key >> /etc/kpssh/allowed_signers\n", want: []string{"2 error"}},
		"tee as root":           {text: strict + "echo x | sudo tee /etc/kpssh/shim.conf\n", want: []string{"2 error"}},
		"sed -i":                {text: strict + "sed -i s/a/b/ /etc/kpssh/shim.conf\n", want: []string{"2 error"}},
		"copying over":          {text: strict + "cp shim /opt/kpssh/kpssh-shim\n", want: []string{"2 error"}},
		"install -t":            {text: strict + "install -t /opt/kpssh shim\n", want: []string{"2 error"}},
		"state":                 {text: strict + "touch /var/lib/hostwarrant/x\n", want: []string{"2 error"}},
		"by another spelling":   {text: strict + "rm '/etc/../etc//kpssh/x'\n", want: []string{"2 error"}},
		"find -delete":          {text: strict + "find /var/lib/hostwarrant -delete\n", want: []string{"2 error"}},
		"dd":                    {text: strict + "dd if=x of=/run/kpssh/y\n", want: []string{"2 error"}},
		"mounting over":         {text: strict + "mount --bind x /etc/kpssh\n", want: []string{"2 error"}},
		"sudo's rule":           {text: strict + "rm /etc/sudoers.d/kpssh\n", want: []string{"2 error"}},

		"what is upstream's":        {text: strict + "rm -rf /var/lib/kpssh; mkdir -p /var/lib/kpssh\n"},
		"a neighbour":               {text: strict + "rm -rf /opt/cni /etc/kpssh2\n"},
		"reading":                   {text: strict + "cat /etc/kpssh/cluster; cp /etc/kpssh/cluster x; sed s/a/b/ /etc/kpssh/cluster\n"},
		"an empty directory above":  {text: strict + "rmdir /srv; rm -f /opt/x\n"},
		"mode of a directory above": {text: strict + "chmod 755 /opt\n"},
	})
}
