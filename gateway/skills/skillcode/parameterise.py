import ast, json, keyword

class Wrong(Exception):
    pass

def value_of(node):
    try:
        return ast.literal_eval(node)
    except Exception:
        return Wrong

def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b

class Literals(ast.NodeVisitor):
    """Finds the nodes that are a literal of one of the values, the largest first, with what may not be replaced left out."""

    def __init__(self, params):
        self.params, self.found, self.inside = params, [], []

    def visit(self, node):
        if isinstance(node, (ast.Constant, ast.List, ast.Dict, ast.UnaryOp)):
            value = value_of(node)
            for name, wanted in self.params.items():
                if value is not Wrong and same(value, wanted):
                    self.found.append((node, name))
                    return
        if isinstance(node, ast.JoinedStr):  # its texts have no places of their own
            self.inside += [(part.lineno, part.value) for part in node.values if isinstance(part, ast.Constant)]
            for part in node.values:
                if not isinstance(part, ast.Constant):
                    self.generic_visit(part)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.inside.append((node.lineno, node.value))
        if type(node).__name__ in ("MatchValue", "MatchMapping"):
            return
        self.generic_visit(node)

class Text:
    """The program as bytes, for ast counts columns in UTF-8, and edits of it that do not overlap."""

    def __init__(self, source):
        self.data, self.starts, self.edits = source.encode(), [0], []
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def at(self, line, column):
        return self.starts[line - 1] + column

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def replace(self, start, end, text):
        self.edits.append((start, end, text.encode()))

    def lines_alone(self, node):
        """The lines of a statement that has them for itself, as a span; None if it shares them."""
        start, end = self.span(node)
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno] - 1
        rest = self.data[end:last].strip()
        alone = not self.data[first:start].strip() and (not rest or rest.startswith(b"#"))
        return (first, min(last + 1, len(self.data))) if alone else None

def names_in(tree):
    """Every name that the program uses or makes, with how often."""
    names = {}
    def add(name):
        names[name] = names.get(name, 0) + 1
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            add(node.name)
        elif isinstance(node, ast.arg):
            add(node.arg)
        elif isinstance(node, ast.alias):
            add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                add(name)
        elif type(node).__name__ in ("MatchAs", "MatchStar") and node.name:
            add(node.name)
    return names

def stored(tree, name):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]

def is_assignment(statement, name, wanted):
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else getattr(statement, "target", None)
    simple = isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name) and target.id == name and statement.value is not None
    return simple and same(value_of(statement.value), wanted)

def check_names(tree, params, text):
    """Says which parameters' names the program has for something else, and drops the assignments that they stand for."""
    used, dropped = names_in(tree), []
    for name, wanted in params.items():
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
            raise Wrong(f"{name!r} is not a valid parameter name")
        if name not in used:
            continue
        own = [s for s in tree.body if is_assignment(s, name, wanted)]
        made = used[name] - sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(tree))
        if len(own) != 1 or made != 1 or not text.lines_alone(own[0]):
            raise Wrong(f"the program uses {name} for something else; give the parameter another name")
        dropped.append((own[0], name))
    return dropped

def main_guards(tree, text):
    """Makes `if __name__ == "__main__":` true, as it was when the program ran."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__" and len(node.ops) == 1:
            if isinstance(node.ops[0], ast.Eq) and value_of(node.comparators[0]) == "__main__":
                text.replace(*text.span(node), "True")
                count += 1
    return count

def awaits(tree):
    """Whether there is an await outside of functions."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or isinstance(node, ast.comprehension) and node.is_async:
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False

def inner_lines(tree):
    """Lines that begin inside of a string: nothing may be put before them."""
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.Constant)) and isinstance(getattr(node, "value", ""), (str, bytes)) and hasattr(node, "lineno"):
            inner.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return inner

KINDS = {str: "str", int: "int", float: "float", bool: "bool", list: "list", dict: "dict"}

def parameter(name, value):
    kind = KINDS.get(type(value))
    return f"{name}: {kind} = {value!r}" if kind else f"{name}={value!r}"

def rewrite(source, function, params, doc):
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
    try:
        tree = compile(source, "program.py", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError) as err:
        raise Wrong(f"invalid program: {err}")
    text = Text(source)
    if function in names_in(tree):
        raise Wrong(f"the program already uses the name {function}; give the skill another name")
    dropped = check_names(tree, params, text)
    gone = {id(statement) for statement, _ in dropped}
    literals = Literals(params)
    for statement in tree.body:
        if id(statement) not in gone:
            literals.visit(statement)
    counts = {name: 0 for name in params}
    for _, name in dropped:
        counts[name] += 1
    for node, name in literals.found:
        counts[name] += 1
        text.replace(*text.span(node), name)
    notes = []
    for name, count in counts.items():
        if count == 0:
            raise Wrong(f"the program has no literal {params[name]!r}, the value of {name}")
        lines = sorted({line for line, part in literals.inside if isinstance(params[name], str) and params[name] and params[name] in part})
        if lines:
            notes.append(f"{params[name]!r} is also part of longer strings, which stay unchanged: line {', '.join(map(str, lines[:5]))}")
    if main_guards(tree, text):
        notes.append('if __name__ == "__main__" became if True')
    imports = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) and text.lines_alone(s)]
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str) and len(tree.body) > 1 and text.lines_alone(first):
        gone.add(id(first))  # a docstring of the program's own
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and id(last) not in gone:
        start, end = text.span(last)
        while end < len(source.encode()) and text.data[end : end + 1] in b" ;":
            end += 1
        text.replace(start, start, "return (" if last.lineno != last.end_lineno else "return ")
        if last.lineno != last.end_lineno:
            text.replace(text.span(last)[1], text.span(last)[1], ")")
    for statement in tree.body:
        if id(statement) in gone or statement in imports:
            begin, end = text.lines_alone(statement)
            text.edits = [e for e in text.edits if not begin <= e[0] < end]
            text.replace(begin, end, "")
    outer = sorted({name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names} & set(names_in(tree)))
    inner = inner_lines(tree)
    marks = {text.starts[number - 1] for number in range(1, len(text.starts)) if number not in inner}
    # No edit goes over the begin of a line but where whole lines go: the indent stands first, then what is edited.
    out, position = bytearray(), 0
    edits = sorted(text.edits, key=lambda e: (e[0], e[1]))
    index = 0
    while position < len(text.data) or index < len(edits):
        if index < len(edits) and edits[index][0] == position and edits[index][1] > position and edits[index][2] == b"" and position in marks:
            position = edits[index][1]
            index += 1
            continue
        if position in marks:
            line_end = text.data.find(b"\n", position)
            if text.data[position : line_end if line_end >= 0 else None].strip():
                out += b"    "
            marks.discard(position)
        if index < len(edits) and edits[index][0] == position:
            out += edits[index][2]
            position = max(position, edits[index][1])
            index += 1
            continue
        out += text.data[position : position + 1]
        position += 1
    head = "".join(text.data[slice(*text.lines_alone(s))].decode() for s in imports)
    head = "".join(line if line.endswith("\n") else line + "\n" for line in head.splitlines(True))
    declared = ", ".join(parameter(name, params[name]) for name in params)
    lines = [head, "\n\n" if head else "", "async " if awaits(tree) else "", f"def {function}({declared}):\n", f"    {doc!r}\n" if "\n" in doc or '"' in doc or "\\" in doc else f'    """{doc}"""\n']
    if outer:
        lines.append(f"    global {', '.join(outer)}\n")
    code = "".join(lines) + out.decode().strip("\n") + "\n"
    try:
        compile(code, "skill.py", "exec")
    except SyntaxError as err:
        raise Wrong(f"cannot turn the program into a function: {err.msg}, line {err.lineno}; pass code instead")
    return {"code": code, "counts": counts, "notes": notes}

def answer():
    try:
        return rewrite(SOURCE, FUNCTION, json.loads(PARAMS), DOC)
    except Wrong as err:
        return {"error": str(err)}
    except RecursionError:
        return {"error": "the program is nested too deep"}

answer()
