// Rules for files: their names, first comments, and words that they must not hold.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { code, expectNone, product, readTree, root, tree, withoutComments } from './tree.ts'

const FORBIDDEN_NAMES = /^(utils?|helpers?|common|types|shared|misc|index)(\.ts)?$/
/** These tests hold the words that they forbid. */
const isLaw = ({ path }: { path: string }) => path.startsWith('test/law/')

describe('a file', () => {
  it('has a name that says what it is for, in kebab-case', () => {
    expectNone(tree, ({ path }) => path.split('/').filter(part => FORBIDDEN_NAMES.test(part)))
    expectNone(code, ({ path }) =>
      /^([a-z0-9-]+\/)+[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/.test(path) ? [] : ['not in kebab-case'],
    )
  })

  it('of the product opens with what it is for', () => {
    expectNone(product, ({ text }) => (/^(\/\/|\/\*)/.test(text) ? [] : ['no opening paragraph']))
  })

  it('leaves nothing for later and silences no checker', () => {
    const later = /\b(TODO|FIXME|XXX)\b|@ts-(ignore|expect-error|nocheck)|\bas any\b(?=\s*[;,).\]\n])/
    expectNone(
      code.filter(file => !isLaw(file)),
      ({ text }) => later.exec(text)?.slice(0, 1) ?? [],
    )
  })

  it('writes the members of a literal where they belong, and spreads no literal into another to save lines', () => {
    const squeezed = /\.\.\.\{/
    expectNone(
      code.filter(file => !isLaw(file)),
      ({ text }) => squeezed.exec(withoutComments(text))?.slice(0, 1) ?? [],
    )
  })

  it('names no path of somebody’s machine', () => {
    const outside = ['docs', '.ci'].flatMap(readTree)
    // In a worktree of git, `.git` is a file that names the main checkout.
    const top = readdirSync(root, { withFileTypes: true }).filter(entry => entry.isFile() && entry.name !== '.git')
    const files = top.map(({ name }) => ({ path: name, text: readFileSync(join(root, name), 'utf8'), imports: [] }))
    expectNone(
      [...tree, ...outside, ...files].filter(file => !isLaw(file)),
      ({ text }) => /(?<![\w.:/-])\/(work|root|farm|home\/\w+)\/[\w.-]*/.exec(text)?.slice(0, 1) ?? [],
    )
  })
})
