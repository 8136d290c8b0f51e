package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/fleet"
)

// askFleet gives what fleet reads.
const askFleet = "kubectl get sshhosts,hoststates,hoststatements,trustpolicies,sshjoinprofiles -A -o json | hostwarrant fleet -"

func (c *cli) fleetCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "fleet FILE",
		Short: "Show which hosts run what, what they are behind, and what expires",
		Long: `fleet reads the objects that kubectl prints as JSON ("-" is stdin) and tells, for each SSHHost, the serials of statements
and profiles that it has, whether it is behind a statement, the roots or a floor, and what expires within 30 days. It verifies
nothing. Exit code 0 says that every host is current, 1 that one is behind or cannot be reached.`,
		Example: `  kubectl get sshhosts,hoststates,hoststatements,trustpolicies,sshjoinprofiles -A -o json | hostwarrant fleet -`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.fleet(args[0], format) },
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

func (c *cli) fleet(path, format string) error {
	if format != "text" && format != "json" {
		return usage("-o is text or json")
	}
	raw, err := c.readObjects(path)
	if err != nil {
		return undecided(err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return stuck(askFleet, "%s: not what kubectl -o json prints: %v", path, err)
	}
	v := fleet.New(list.Items, c.now())
	if len(v.Hosts) == 0 {
		return stuck(askFleet, "%s holds no SSHHost", path)
	}
	if err := c.printFleet(v, format); err != nil {
		return err
	}
	if v.Behind() {
		return &failure{code: exitRefused}
	}
	return nil
}

// maxObjects bounds what kubectl prints of a fleet: 5,000 hosts are about 30 MB.
const maxObjects = 512 << 20

func (c *cli) readObjects(path string) (raw []byte, err error) {
	from := c.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	raw, err = io.ReadAll(io.LimitReader(from, maxObjects+1))
	if err == nil && len(raw) > maxObjects {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxObjects)
	}
	return raw, err
}

func (c *cli) printFleet(v fleet.View, format string) error {
	if format == "json" {
		out, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return undecided(err)
		}
		return c.print(append(out, '\n'))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 1, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	line("HOST", "CLASS", "REACHABLE", "CONTACT", "STATEMENTS", "PROFILES", "BEHIND")
	for _, h := range v.Hosts {
		contact := "never"
		if !h.Contact.IsZero() {
			contact = h.Contact.UTC().Format(time.RFC3339)
		}
		line(h.Namespace+"/"+h.Name, h.Class, h.Reachable, contact, serials(h.Statements), serials(h.Profiles), orDash(strings.Join(h.Behind, "; ")))
	}
	if err := w.Flush(); err != nil {
		return undecided(err)
	}
	for _, e := range v.Expiring {
		fmt.Fprintf(&b, "expires %s  %s\n", e.At.Format(time.RFC3339), e.What)
	}
	for _, u := range v.Unread {
		fmt.Fprintf(&b, "unread  %s\n", u)
	}
	return c.print([]byte(b.String()))
}

func serials(m map[string]int64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return orDash(strings.Join(all, ","))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
