export default text.split("\n")
