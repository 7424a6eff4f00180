import importlib, inspect, io, sys, unittest

module = importlib.import_module("skills.MODULE.skill_test")
log = io.StringIO()
result = unittest.TextTestRunner(stream=log, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(module))
if not result.wasSuccessful():
    sys.exit(log.getvalue())
for name, function in list(vars(module).items()):
    if name.startswith("test") and inspect.isfunction(function):
        told = function()
        if inspect.iscoroutine(told):
            await told
