package mark

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// InGo finds the marks of one Go file.
func InGo(file string, source []byte) (Found, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	if err != nil {
		return Found{}, err
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	ifs := ifsByLine(tree, line)

	var found Found
	for _, group := range tree.Comments {
		// The lines of one group are one text: a mark may go on in the lines below it.
		below := ifs[line(group.End())+1]
		for _, comment := range group.List {
			text, isLine := strings.CutPrefix(comment.Text, "//")
			codes, why, isMark, err := parse(text)
			switch {
			case !isLine || !isMark:
			case err != nil:
				found.problem(file, line(comment.Pos()), "%v", err)
			case below == nil:
				found.problem(file, line(comment.Pos()), "the mark does not stand directly above an if statement")
			default:
				found.Marks = append(found.Marks, Mark{
					File: file, Line: line(comment.Pos()), Codes: codes, Why: why,
					start:       fset.Position(below.Cond.Pos()).Offset,
					end:         fset.Position(below.Cond.End()).Offset,
					replacement: func(old string) string { return "false && (" + old + ")" },
				})
			}
		}
	}
	return found, nil
}

func ifsByLine(tree *ast.File, line func(token.Pos) int) map[int]*ast.IfStmt {
	ifs := map[int]*ast.IfStmt{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.IfStmt); ok && ifs[line(s.Pos())] == nil {
			ifs[line(s.Pos())] = s
		}
		return true
	})
	return ifs
}
