// Sets the folder of save and load before saved.cjs reads it.
process.env.SALLYPORT_WORKSPACE ??= process.cwd();
