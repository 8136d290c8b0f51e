package lint

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what the shell has set when a command starts, as far as the text tells.
type state struct {
	traced  bool // set -x may be on
	private bool // umask keeps new files from others, for certain
	ended   bool // never reached: behind exit
}

// join is the state where two ways meet.
func join(a, b state) state {
	switch {
	case a.ended:
		return b
	case b.ended:
		return a
	default:
		return state{traced: a.traced || b.traced, private: a.private && b.private}
	}
}

// flow knows the state before each statement. It follows branches, subshells and functions; a
// statement that is reached in several ways has the join of them.
type flow struct {
	before map[*syntax.Stmt]state
	tracer map[*syntax.Stmt]bool // statements that turn tracing on
	funcs  map[string]*syntax.Stmt
	done   map[visit]state // results, so that each statement is followed once for each state
	deep   int             // calls of functions within functions
	nested map[*syntax.Stmt][]*syntax.Stmt
}

type visit struct {
	stmt *syntax.Stmt
	in   state
}

// follow runs over a script without running it.
func follow(file *syntax.File, facts *facts) *flow {
	f := &flow{
		before: map[*syntax.Stmt]state{}, tracer: map[*syntax.Stmt]bool{}, funcs: map[string]*syntax.Stmt{},
		done: map[visit]state{}, nested: substitutions(file),
	}
	for _, stmt := range facts.stmts {
		if decl, ok := stmt.Cmd.(*syntax.FuncDecl); ok && decl.Name != nil {
			f.funcs[decl.Name.Value] = decl.Body
		}
	}
	f.list(file.Stmts, state{})
	for _, stmt := range facts.stmts { // traps and the like: bodies that nothing seen here calls
		if _, reached := f.before[stmt]; !reached {
			f.stmt(stmt, state{})
		}
	}
	return f
}

// substitutions maps each statement to the statements that run in its words.
func substitutions(file *syntax.File) map[*syntax.Stmt][]*syntax.Stmt {
	nested := map[*syntax.Stmt][]*syntax.Stmt{}
	var owners []*syntax.Stmt
	var stack []syntax.Node
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			if _, ok := stack[len(stack)-1].(*syntax.Stmt); ok {
				owners = owners[:len(owners)-1]
			}
			stack = stack[:len(stack)-1]
			return true
		}
		if len(owners) > 0 {
			owner := owners[len(owners)-1]
			switch n := n.(type) {
			case *syntax.CmdSubst:
				nested[owner] = append(nested[owner], n.Stmts...)
			case *syntax.ProcSubst:
				nested[owner] = append(nested[owner], n.Stmts...)
			}
		}
		if stmt, ok := n.(*syntax.Stmt); ok {
			owners = append(owners, stmt)
		}
		stack = append(stack, n)
		return true
	})
	return nested
}

func (f *flow) list(stmts []*syntax.Stmt, st state) state {
	for _, stmt := range stmts {
		st = f.stmt(stmt, st)
	}
	return st
}

// stmt gives the state behind a statement.
func (f *flow) stmt(stmt *syntax.Stmt, in state) state {
	if out, ok := f.done[visit{stmt, in}]; ok {
		return out
	}
	f.done[visit{stmt, in}] = in // for recursion
	was, seen := f.before[stmt]
	if !seen {
		was = state{ended: true}
	}
	f.before[stmt] = join(was, in)
	if nested := f.nested[stmt]; len(nested) > 0 {
		f.list(nested, in)
	}
	out := f.command(stmt, in)
	if stmt.Background {
		out = in
	}
	f.done[visit{stmt, in}] = out
	return out
}

func (f *flow) command(stmt *syntax.Stmt, in state) state {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return f.call(commandOf(stmt), in)
	case *syntax.Block:
		return f.list(c.Stmts, in)
	case *syntax.Subshell:
		f.list(c.Stmts, in)
	case *syntax.BinaryCmd:
		return f.binary(c, in)
	case *syntax.IfClause:
		return f.branch(c, in)
	case *syntax.WhileClause:
		return f.loop(in, append(append([]*syntax.Stmt{}, c.Cond...), c.Do...))
	case *syntax.ForClause:
		return f.loop(in, c.Do)
	case *syntax.CaseClause:
		out := in
		for _, item := range c.Items {
			out = join(out, f.list(item.Stmts, in))
		}
		return out
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return f.stmt(c.Stmt, in)
		}
	case *syntax.CoprocClause:
		f.stmt(c.Stmt, in)
	}
	return in
}

func (f *flow) binary(c *syntax.BinaryCmd, in state) state {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		f.stmt(c.X, in)
		f.stmt(c.Y, in)
		return in
	}
	left := f.stmt(c.X, in)
	return join(left, f.stmt(c.Y, left))
}

func (f *flow) branch(c *syntax.IfClause, in state) state {
	in = f.list(c.Cond, in)
	then := f.list(c.Then, in)
	if c.Else == nil {
		if len(c.Cond) == 0 { // the last else
			return then
		}
		return join(in, then)
	}
	return join(then, f.branch(c.Else, in))
}

// loop follows a body until it changes nothing any more: at most once for each state.
func (f *flow) loop(in state, body []*syntax.Stmt) state {
	for {
		out := join(in, f.list(body, in))
		if out == in {
			return out
		}
		in = out
	}
}

func (f *flow) call(c command, in state) state {
	switch c.name {
	case "set":
		for _, o := range setOptions(c.args) {
			if o.name == "xtrace" {
				in.traced = o.on
				f.tracer[c.stmt] = o.on
			}
		}
	case "umask":
		if len(c.operands()) > 0 {
			mask, _ := literal(c.operands()[0])
			in.private = hidesFromOthers(mask)
		}
	case "exit", "return":
		in.ended = true
	default:
		for _, wrapper := range c.wrappers {
			in.ended = in.ended || wrapper == "exec"
		}
		if body, ok := f.funcs[c.name]; ok && len(c.wrappers) == 0 {
			return f.function(body, in)
		}
	}
	return in
}

// maxCalls bounds how far functions that call functions are followed.
const maxCalls = 100

// function follows a body from a call; return comes back from it.
func (f *flow) function(body *syntax.Stmt, in state) state {
	if f.deep >= maxCalls {
		return in
	}
	f.deep++
	out := f.stmt(body, in)
	f.deep--
	out.ended = in.ended
	return out
}

// option is one option that set turns on or off.
type option struct {
	name string
	on   bool
}

// setOptions reads the arguments of set.
func setOptions(args []*syntax.Word) []option {
	names := map[rune]string{'e': "errexit", 'u': "nounset", 'x': "xtrace"}
	var all []option
	for i := 0; i < len(args); i++ {
		text, _ := literal(args[i])
		if len(text) < 2 || text[0] != '-' && text[0] != '+' || text == "--" {
			return all
		}
		on := text[0] == '-'
		for _, letter := range text[1:] {
			switch {
			case letter != 'o':
				all = append(all, option{names[letter], on})
			case i+1 < len(args):
				i++
				name, _ := literal(args[i])
				all = append(all, option{name, on})
			}
		}
	}
	return all
}

// hidesMode reads the mode of chmod or install -m: others may not read.
func hidesMode(mode string) bool {
	if mode != "" && strings.Trim(mode, "01234567") == "" {
		return (mode[len(mode)-1]-'0')&4 == 0
	}
	return hidesFromOthers(mode)
}

// hidesFromOthers reads a umask, in octal or in letters: others may not read.
func hidesFromOthers(mask string) bool {
	if mask == "" {
		return false
	}
	if strings.Trim(mask, "01234567") == "" {
		return (mask[len(mask)-1]-'0')&4 != 0
	}
	hidden := false
	for clause := range strings.SplitSeq(mask, ",") {
		who, what := clause, ""
		if i := strings.IndexAny(clause, "=+-"); i >= 0 {
			who, what = clause[:i], clause[i:]
		}
		if what == "" || who != "" && !strings.ContainsAny(who, "oa") {
			continue
		}
		switch what[0] {
		case '=':
			hidden = !strings.Contains(what, "r")
		case '-':
			hidden = hidden || strings.Contains(what, "r")
		case '+':
			hidden = hidden && !strings.Contains(what, "r")
		}
	}
	return hidden
}
