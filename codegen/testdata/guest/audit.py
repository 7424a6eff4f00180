"""Reads generated Python as text, then imports all of it. Prints what is not as it should be.

Every file may hold only what a wrapper is made of; nothing else may stand at its top level.
"""
import ast
import importlib
import pathlib
import sys

OURS = ("__aio__.py", "__offer__.py")
ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT))


def expected(node, path):
    if path.name in OURS or isinstance(node, (ast.ImportFrom, ast.Import)):
        return True
    if isinstance(node, ast.If):
        return all(isinstance(n, ast.ImportFrom) for n in node.body) and not node.orelse
    if isinstance(node, ast.ClassDef):
        body = [n for n in node.body if not is_text(n)]
        return all(isinstance(n, ast.AnnAssign) and n.value is None for n in body)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return is_names(node.value) or is_dict_type(node.value) or is_spec(node)
    if isinstance(node, ast.FunctionDef) and path.name != "__init__.py":
        return len(node.body) == 2 and is_text(node.body[0]) and is_send(node.body[1])
    if path.name in ("resources.py", "prompts.py") and is_text(node):
        return True
    if path.name == "__init__.py":
        return is_text(node) or is_package(node) or isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
    return False


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_spec(node):
    return ast.unparse(node.targets[0]) in ("SPEC", "_SPEC", "__SPEC") and isinstance(node.value, ast.Constant)


def is_names(value):
    return isinstance(value, ast.List) and all(isinstance(e, ast.Constant) for e in value.elts)


def is_dict_type(value):
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypedDict", "typing.TypedDict")):
        return False
    return len(value.args) == 2 and all(isinstance(v, ast.Constant) for v in value.args[1].keys + value.args[1].values)


def is_package(node):
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "__package"


def is_send(node):
    if not (isinstance(node, ast.Return) and isinstance(node.value, ast.Call)):
        return False
    tool, args, *spec = node.value.args
    return isinstance(tool, ast.Constant) and all(ast.unparse(s) in ("SPEC", "_SPEC", "__SPEC") for s in spec) and all(isinstance(v, ast.Name) or is_texts(v) for v in args.values)


def is_texts(v):
    return ast.unparse(v) == "_texts(arguments, more)"


# What the interpreter itself does to load a module; anything else was done by the module.
LOADING = {"import", "compile", "exec", "open", "marshal.loads", "os.listdir", "os.scandir", "sys._getframe", "sys._getframemodulename", "object.__getattr__", "object.__setattr__",
           "code.__new__", "function.__new__", "object.__delattr__"}  # with_aio makes twins
importing = False


def hook(event, args):
    if importing and (event not in LOADING or event == "open" and args[1] not in ("r", "rb", None)):
        print(f"importing a module did {event} {args!r:.200}")


sys.addaudithook(hook)
sys.dont_write_bytecode = True
for path in sorted((ROOT / "servers").rglob("*.py")):
    for node in ast.parse(path.read_text(), str(path), feature_version=(3, 9)).body:
        if not expected(node, path):
            print(f"{path.name}:{node.lineno}: {ast.unparse(node)[:200]}")
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    importing = True
    importlib.import_module(module.removesuffix(".__init__"))
    importing = False
    if path.name not in ("__init__.py", "resources.py", "prompts.py", *OURS):
        package, name = module.rsplit(".", 1)
        if not callable(getattr(importlib.import_module(package), name)):
            print(f"{module} is no function")
