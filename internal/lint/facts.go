package lint

import (
	"mvdan.cc/sh/v3/syntax"
)

// facts is what one walk over the tree finds.
type facts struct {
	stmts    []*syntax.Stmt // in the order of the script
	above    map[*syntax.Stmt]link
	commands []command
	uses     []use
	assigns  []assign
	comments []syntax.Comment
	assigned map[string]bool // names that the script sets itself
	secrets  map[string]bool // names of variables that hold secrets
}

// link leads from a statement to what its output goes to.
type link struct {
	parent      *syntax.Stmt
	substituted bool         // the parent takes the output as part of a word
	piped       *syntax.Stmt // the next command of a pipeline
}

// place says where in the grammar an expansion stands.
type place int

const (
	elsewhere  place = iota // tests, case words, here strings: never split
	argument                // of a command, a list of for, an array: split unless quoted
	assignment              // the value of a variable
	redirected              // the file of a redirection: split, and an error where that gives two
	hereDoc                 // the text of a here-document
	arithmetic              // evaluated as a number
)

// use is one expansion of a parameter.
type use struct {
	name   string
	exp    *syntax.ParamExp
	stmt   *syntax.Stmt // innermost
	place  place
	quoted bool

	hereString bool
	untraced   bool         // xtrace shows the name and not the value: in the words of for and case, in redirections
	word       *syntax.Word // outermost word within stmt
}

// assign gives a variable a value.
type assign struct {
	name   string
	node   *syntax.Assign
	stmt   *syntax.Stmt
	outer  int      // index of the assignment around it, or -1
	direct []string // parameters whose value goes into it, but for those of inner assignments
}

// gather walks the tree once.
func gather(file *syntax.File) *facts {
	g := &gatherer{facts: &facts{above: map[*syntax.Stmt]link{}, assigned: map[string]bool{}}}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			g.leave()
		} else {
			g.enter(n)
			g.stack = append(g.stack, n)
		}
		return true
	})
	return g.facts
}

type gatherer struct {
	*facts
	stack   []syntax.Node
	stmt    []*syntax.Stmt
	current []int // indexes of the assignments around
}

func (g *gatherer) enter(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		g.stmts = append(g.stmts, n)
		g.above[n] = g.link(n)
		g.stmt = append(g.stmt, n)
		if c := commandOf(n); c.call != nil {
			g.commands = append(g.commands, c)
		}
	case *syntax.Comment:
		g.comments = append(g.comments, *n)
	case *syntax.Assign:
		g.assign(n.Name, n)
	case *syntax.WordIter: // for gives its variable each of the words
		g.assign(n.Name, &syntax.Assign{Name: n.Name})
	case *syntax.ParamExp:
		if n.Param == nil {
			return
		}
		g.use(g.classify(n))
	case *syntax.Lit:
		if !g.bare() || !syntax.ValidName(n.Value) {
			return
		}
		if u := g.classify(&syntax.ParamExp{Param: n, Short: true}); u.place == arithmetic { // a name without its dollar
			g.use(u)
		}
	}
}

// assign notes that a variable gets a value, which holds what is used until the node is left.
func (g *gatherer) assign(name *syntax.Lit, n *syntax.Assign) {
	a := assign{node: n, stmt: g.innermost(), outer: -1}
	if len(g.current) > 0 {
		a.outer = g.current[len(g.current)-1]
	}
	if name != nil {
		a.name = name.Value
		g.assigned[name.Value] = g.assigned[name.Value] || !n.Naked
	}
	g.current = append(g.current, len(g.assigns))
	g.assigns = append(g.assigns, a)
}

func (g *gatherer) use(u use) {
	g.uses = append(g.uses, u)
	if len(g.current) > 0 && u.shows() {
		a := &g.assigns[g.current[len(g.current)-1]]
		a.direct = append(a.direct, u.name)
	}
}

// bare tells whether a literal is a word of its own, as the names in a sum are.
func (g *gatherer) bare() bool {
	w, ok := g.stack[len(g.stack)-1].(*syntax.Word)
	return ok && len(w.Parts) == 1
}

func (g *gatherer) leave() {
	top := g.stack[len(g.stack)-1]
	g.stack = g.stack[:len(g.stack)-1]
	switch top.(type) {
	case *syntax.Stmt:
		g.stmt = g.stmt[:len(g.stmt)-1]
	case *syntax.Assign, *syntax.WordIter:
		g.current = g.current[:len(g.current)-1]
	}
}

// innermost is the statement around, which everything but comments at the top has.
func (g *gatherer) innermost() *syntax.Stmt { return g.stmt[len(g.stmt)-1] }

// link finds out where the output of a statement goes that is about to be entered.
func (g *gatherer) link(stmt *syntax.Stmt) link {
	if len(g.stmt) == 0 {
		return link{}
	}
	l := link{parent: g.innermost()}
	switch n := g.stack[len(g.stack)-1].(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		l.substituted = true
	case *syntax.BinaryCmd:
		if (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && n.X == stmt {
			l.piped = n.Y
		}
	}
	return l
}

// classify looks up from an expansion to the statement that holds it.
func (g *gatherer) classify(exp *syntax.ParamExp) use {
	u := use{name: exp.Param.Value, exp: exp, stmt: g.innermost()}
	for i := len(g.stack) - 1; i >= 0; i-- {
		switch n := g.stack[i].(type) {
		case *syntax.DblQuoted:
			u.quoted = true
		case *syntax.Word:
			u.word = n
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop,
			*syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
			u.place = arithmetic
			return u
		case *syntax.BinaryTest:
			u.place = testPlace(n.Op)
			return u
		case *syntax.ParamExp:
			if n.Slice != nil && (u.word == n.Slice.Offset || u.word == n.Slice.Length) {
				u.place = arithmetic
				return u
			}
			if !defaults(n) { // a pattern, a replacement, a message
				return u
			}
		case *syntax.CallExpr, *syntax.WordIter, *syntax.ArrayElem:
			u.place = argument
			_, u.untraced = n.(*syntax.WordIter)
			return u
		case *syntax.Assign:
			u.place = assignment
			if n.Naked && n.Name == nil { // export $x
				u.place = argument
			}
			return u
		case *syntax.Redirect:
			u.place, u.hereString, u.untraced = redirectPlace(n, u.word), n.Op == syntax.WordHdoc, true
			return u
		case *syntax.CaseClause, *syntax.CaseItem:
			u.untraced = true
			return u
		case *syntax.Stmt, *syntax.TestClause:
			return u
		}
	}
	return u
}

// testPlace tells the operators of [[ that evaluate both sides as numbers.
func testPlace(op syntax.BinTestOperator) place {
	switch op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		return arithmetic
	default:
		return elsewhere
	}
}

func redirectPlace(r *syntax.Redirect, w *syntax.Word) place {
	switch {
	case r.Hdoc != nil && w == r.Hdoc:
		return hereDoc
	case r.Op == syntax.WordHdoc:
		return elsewhere
	default:
		return redirected
	}
}

// shows tells whether an expansion gives the value of its parameter: ${#x}, ${x:+word} and ${!x*} do not.
func (u use) shows() bool {
	if u.exp.Length || u.exp.Names != 0 {
		return false
	}
	return u.exp.Exp == nil || u.exp.Exp.Op != syntax.AlternateUnset && u.exp.Exp.Op != syntax.AlternateUnsetOrNull
}

// splits tells whether the value of an expansion falls into several words.
func (u use) splits() bool {
	return !u.quoted && u.shows() && (u.place == argument || u.place == redirected)
}

// defaults tells the expansions that may give another word instead of a value.
func defaults(exp *syntax.ParamExp) bool {
	if exp.Exp == nil {
		return false
	}
	switch exp.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	default:
		return false
	}
}

// demands tells ${x:?} and ${x?}: empty is refused by the first only.
func (u use) demands() (unset, empty bool) {
	if u.exp.Exp == nil {
		return false, false
	}
	empty = u.exp.Exp.Op == syntax.ErrorUnsetOrNull
	return empty || u.exp.Exp.Op == syntax.ErrorUnset, empty
}
