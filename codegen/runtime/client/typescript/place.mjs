// Where save and load keep their files: said before saved.cjs asks.
process.env.SALLYPORT_WORKSPACE ??= process.cwd();
