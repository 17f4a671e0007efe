// The pictures in the documents: each is there, is small, and is one that `npm run pictures` takes; and every page of the rail has
// one. What they show is looked at by people.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PICTURES } from '../../bin/pictures/list.ts'
import { RAIL } from '../../producers/console/server/page.ts'
import { root } from './tree.ts'

const BYTES_MAX = 120_000
const FOLDER = 'docs/pictures'
const DOCUMENTS = ['README.md', ...readdirSync(join(root, 'docs')).map(name => `docs/${name}`)].filter(name =>
  name.endsWith('.md'),
)
const names = PICTURES.map(({ name }) => name)
const TAKE = 'run `npm run pictures` (it needs Chromium), look at the pictures, and commit them'

/** The pictures that a document shows, as paths from the root, and the words that stand for each. */
function shownIn(document: string): { path: string; words: string }[] {
  const folder = document.includes('/') ? 'docs/' : ''
  const text = readFileSync(join(root, document), 'utf8')
  return [...text.matchAll(/!\[([^\]]*)\]\(([^)]+\.png)\)/g)].map(([, words = '', to = '']) => ({
    path: folder + to,
    words,
  }))
}

describe('a picture of the console', () => {
  it('is there for every page of the rail, and is shown in docs/console.md', () => {
    const shown = shownIn('docs/console.md').map(({ path }) => path)
    const lacking = RAIL.map(({ at }) => `${FOLDER}/${at}.png`).filter(
      path => !existsSync(join(root, path)) || !shown.includes(path),
    )
    expect(lacking, `${TAKE}; then show them in docs/console.md`).toEqual([])
  })

  it('that a document shows is one that the script takes, and says in words what is on it', () => {
    const shown = DOCUMENTS.flatMap(shownIn)
    expect(shown.map(({ path }) => path)).toContain(`${FOLDER}/now.png`)
    expect(shownIn('README.md')).toHaveLength(1)
    for (const { path, words } of shown) {
      expect(existsSync(join(root, path)), `${path}: ${TAKE}`).toBe(true)
      expect(names.map(name => `${FOLDER}/${name}.png`)).toContain(path)
      expect(words.length, path).toBeGreaterThan(20)
    }
  })

  it('is shown somewhere, and takes at most 120 kB', () => {
    const shown = DOCUMENTS.flatMap(shownIn).map(({ path }) => path)
    const files = readdirSync(join(root, FOLDER))
    expect(files.sort()).toEqual(names.map(name => `${name}.png`).sort())
    for (const file of files) {
      expect(shown).toContain(`${FOLDER}/${file}`)
      expect(readFileSync(join(root, FOLDER, file)).length, file).toBeLessThan(BYTES_MAX)
    }
  })
})
