// What a field of a form reads as.

/** While nothing is given. */
export const ABSENT = Symbol("absent");

/** A value that cannot be read, with its place. */
export class FieldProblem extends Error {
  constructor(pointer, message) {
    super(message);
    this.pointer = pointer;
  }
}
