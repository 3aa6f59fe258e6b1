/** The JSON of a T: an enum is one of its values. */
export type Json<T> =
  T extends string ? `${T}` :
  T extends number ? (`${T}` extends `${infer N extends number}` ? N : T) :
  T extends boolean | null | undefined ? T :
  T extends (infer E)[] ? Json<E>[] :
  unknown extends T ? T :
  T extends object ? { [K in keyof T]: Json<T[K]> } : T;
