import { describe, expect, it } from 'vitest'
import { leaveOut } from './leave-out.ts'

const without = (text: string) => leaveOut(text, specifier => specifier.includes('gone'))

describe('what is left out of a composition', () => {
  it.each([
    ['an element of a list', "import { b } from './gone.ts'\nconst x = [a, b(1, 2), c]\n", '\nconst x = [a, c]\n'],
    ['the last element', "import { b } from './gone.ts'\nconst x = [a, b]\n", '\nconst x = [a]\n'],
    [
      'a member of a literal',
      "import * as b from './gone.ts'\nconst x = {\n  one: a,\n  two: b.two,\n}\n",
      '\nconst x = {\n  one: a,\n}\n',
    ],
    [
      'a whole element, whatever is deep in it',
      "import { b } from './gone.ts'\nconst x = [\n  { name: 'a', run: () => a() },\n  { name: 'b', run: () => b() },\n]\n",
      "\nconst x = [\n  { name: 'a', run: () => a() },\n  { name: 'b' },\n]\n",
    ],
    [
      'a statement',
      "import { open } from './gone.ts'\nfunction f() {\n  const a = 1\n  const b = open(\n    a,\n  )\n  return a\n}\n",
      '\nfunction f() {\n  const a = 1\n  return a\n}\n',
    ],
    [
      'a member of an interface',
      "import type { B } from './gone.ts'\ninterface X {\n  a: string\n  b: B\n}\n",
      '\ninterface X {\n  a: string\n}\n',
    ],
    [
      'a clause',
      "import type { B } from './gone.ts'\ninterface X extends B {\n  a: string\n}\n",
      '\ninterface X {\n  a: string\n}\n',
    ],
    [
      'one of two clauses',
      "import type { B } from './gone.ts'\ninterface X extends A, B {\n  a: string\n}\n",
      '\ninterface X extends A {\n  a: string\n}\n',
    ],
    [
      'a file that is loaded later',
      "const x = [\n  { term: 'a', load: async () => (await import('./a.ts')).a },\n  { term: 'b', load: async () => (await import('./gone.ts')).b },\n]\n",
      "const x = [\n  { term: 'a', load: async () => (await import('./a.ts')).a },\n  { term: 'b' },\n]\n",
    ],
  ])('%s', (_, text, left) =>
    expect(without(text).replace(/[ \t]+(?=[\]}\n])/g, '')).toBe(left.replace(/[ \t]+(?=[\]}\n])/g, '')),
  )
})
