package allowedsigners_test

import (
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// makeList makes an allowed_signers file, more often than not with a line that fits.
func (d *draft) makeList() {
	var lines []string
	for range 1 + d.IntN(3) {
		lines = append(lines, d.makeLine())
	}
	if d.chance(10) {
		lines = append(lines, pick(d, "", " \t", "# signers", "  # signers", "#"))
	}
	d.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	end := "\n"
	if d.chance(5) {
		end = "\r\n"
	}
	d.list = strings.Join(lines, end)
	if d.chance(80) {
		d.list += end
	}
	if d.chance(5) {
		d.list = string(d.scramble([]byte(d.list)))
	}
}

func (d *draft) makeLine() string {
	principals := d.makePrincipals()
	if principals == "" {
		d.odd["list-line"] = true // what comes next is read as principals
	}
	if strings.Contains(principals, " ") || d.chance(10) {
		principals = `"` + principals + `"`
	}
	gap := func() string {
		if d.chance(90) {
			return " "
		}
		return pick(d, "\t", "  ", " \t ")
	}
	line := principals + gap()
	if options := d.makeOptions(); options != "" {
		line += options + gap()
	}
	keyType, encoded, _ := strings.Cut(d.lineKey(), " ")
	line += keyType + gap() + encoded
	if d.chance(20) {
		line += gap() + pick(d, "alice", "alice at home", "# no comment", "\t")
	}
	if d.chance(5) {
		line = gap() + line
	}
	if d.chance(3) {
		d.odd["list-line"] = true
		line = d.breakLine(line)
	}
	return line
}

func (d *draft) makePrincipals() string {
	if d.chance(80) {
		return pick(d, d.identity, "*", "*,!bob", "bob,"+d.identity)
	}
	all := []string{}
	for range 1 + d.IntN(3) {
		all = append(all, pick(d, "kpssh", "*", "join@*", "*@tls-?", "?pssh", "!join@*", "!kpssh", "alice@example.org", "alice b", "k*", "!*", "??", "", "!", "[k]pssh"))
	}
	return strings.Join(all, ",")
}

// lineKey is mostly the key that signs, or the authority of its certificate.
func (d *draft) lineKey() string {
	right := d.users[d.kind].Line
	if d.certificate != nil {
		right = d.cas[d.ca].Line
	}
	if d.chance(5) {
		right = pick(d, d.stranger.Line, d.users["rsa2048"].Line, d.users["ecdsa384"].Line, d.users[d.kind].Line, d.cas[d.ca].Line)
	}
	if d.certificate != nil && d.chance(3) {
		right = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(d.certificate)))
	}
	weak := d.users["rsa2048"].Line == right || d.cas["rsa2048"].Line == right
	if weak || strings.Contains(right, "-cert-v01") {
		d.odd["list-key"] = true
	}
	return right
}

func (d *draft) makeOptions() string {
	var all []string
	authority := d.certificate != nil
	if d.chance(5) {
		authority = !authority
	}
	if authority {
		all = append(all, "cert-authority")
	}
	if d.chance(35) {
		all = append(all, `namespaces="`+pick(d, "kpssh", "kpssh,file", "*", "k*", d.namespace+",x", "*,!x", "file", "*,!kpssh", "!file,*", "", "file, kpssh", d.namespace, "kp?sh")+`"`)
	}
	var after, before time.Time
	if d.chance(25) {
		text, at := d.makeTime(-24 * time.Hour)
		all, after = append(all, `valid-after="`+text+`"`), at
	}
	if d.chance(25) {
		text, at := d.makeTime(24 * time.Hour)
		all, before = append(all, `valid-before="`+text+`"`), at
	}
	if !after.IsZero() && !before.IsZero() && !before.After(after) {
		d.odd["list-line"] = true // ssh-keygen skips the line
	}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	text := strings.Join(all, ",")
	if d.chance(5) {
		text = strings.ToUpper(text[:len(text)/2]) + text[len(text)/2:] // may change a namespace too, for both readers
	}
	return text
}

// makeTime is mostly a time that holds, often one beside now. What is no proper time is zero.
func (d *draft) makeTime(holds time.Duration) (string, time.Time) {
	at := d.now.Add(holds)
	switch d.IntN(20) {
	case 0:
		at = d.now.Add(-holds)
	case 1, 2, 3, 4:
		at = d.now.Add(time.Duration(d.IntN(3)-1) * time.Second)
	}
	if d.chance(6) {
		d.odd["list-time"], d.odd["list-line"] = true, true
		return pick(d, at.Format("20060102150405"), at.Format("20060102"), at.Format("20060102")+"UTC", "20990231Z", "19691231Z", "19700101Z",
			"20991301Z", "always", "", "2099-01-01Z", "20161231235960Z", "209901011Z", "20990101 Z"), time.Time{}
	}
	layout := pick(d, "20060102150405Z", "20060102150405Z", "200601021504Z", "20060102Z")
	text := at.Format(layout)
	at, err := time.Parse(layout, text)
	if err != nil {
		d.t.Error(err)
	}
	return text, at
}

// breakLine makes a line that ssh-keygen does not read either, or reads in its own way.
func (d *draft) breakLine(line string) string {
	switch d.IntN(10) {
	case 0:
		return line[:d.IntN(len(line))]
	case 1:
		return strings.Replace(line, " ", ` namespaces="kpssh" `, 1)
	case 2:
		return strings.Replace(line, " ", " no-touch-required ", 1)
	case 3:
		return strings.Replace(line, " ", " namespaces=kpssh ", 1)
	case 4:
		return strings.ReplaceAll(line, `"`, "")
	case 5:
		return `"` + d.identity + `"` + d.lineKey()
	case 6:
		return strings.Repeat("x", 1023) + "," + line
	case 7:
		return strings.Replace(line, " ", ` namespaces="kps\"h,kpssh" `, 1)
	case 8:
		return strings.Replace(line, ",", ",,", 1) + pick(d, " \x01", "\x1b", " \x7f", "\r \r")
	default:
		return pick(d, "x", "alice", "alice cert-authority", `alice "`, `"alice`, "alice,cert-authority,CERT-AUTHORITY "+d.lineKey(), d.identity+" cert-authority,cert-authority "+d.lineKey())
	}
}

// scramble changes a few bytes at random.
func (d *draft) scramble(data []byte) []byte {
	d.odd[anything] = true
	data = append([]byte(nil), data...)
	for range 1 + d.IntN(3) {
		if len(data) == 0 {
			break
		}
		at := d.IntN(len(data))
		switch d.IntN(4) {
		case 0:
			data[at] ^= 1 << d.IntN(8)
		case 1:
			data = append(data[:at], data[at+1:]...)
		case 2:
			data = append(data[:at], append([]byte{pick[byte](d, ' ', ',', '"', '!', '*', '\n', 0, 'A', '=')}, data[at:]...)...)
		case 3:
			data = data[:at]
		}
	}
	return data
}
