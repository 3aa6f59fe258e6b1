"use strict";
class Tree {
  constructor(depth) {
    this.left = depth > 0 ? new Tree(depth - 1) : null;
    this.right = depth > 0 ? new Tree(depth - 1) : null;
  }
  count() {
    return 1 + (this.left ? this.left.count() + this.right.count() : 0);
  }
}
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const kept = [];
function build() {
  kept.push(new Tree(10));
  kept.push("line ".repeat(1000).split(" "));
  return kept[0].count();
}
const end = Date.now() + 400;
let sum = 0;
while (Date.now() < end) {
  sum += fib(20);
  if (kept.length < 60) sum += build();
}
setTimeout(() => { console.log(sum > 0); }, 60);
