// The colours of the console are exactly those that were decided, and each can be read on its ground: texts with a contrast of
// 4.5, lines that tell something with 3. Nothing on a page moves.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../../law/tree.ts'
import { contrast } from './contrast.ts'

const ROOM = join(root, 'producers/console/browser/styles')
const STYLES = readdirSync(ROOM)
  .filter(name => name.endsWith('.css'))
  .map(name => ({ name, text: readFileSync(join(ROOM, name), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '') }))

/** The colours as they were decided. */
const DECIDED = {
  light: {
    ground: '#ffffff',
    panel: '#f5f6f8',
    ink: '#1b1f24',
    muted: '#57606a',
    link: '#0b57d0',
    well: '#1a7f37',
    warn: '#8a5a00',
    bad: '#b3261e',
    border: '#7d8590',
  },
  dark: {
    ground: '#14171c',
    panel: '#1b1f26',
    ink: '#e6e9ee',
    muted: '#9aa4b1',
    link: '#8ab4f8',
    well: '#57c26f',
    warn: '#e0a93b',
    bad: '#ff8a80',
    border: '#6e7885',
  },
} as const
const TEXTS = ['ink', 'muted', 'link', 'well', 'warn', 'bad'] as const
const GROUNDS = ['ground', 'panel'] as const

/** The colours of console.css, and of dark.css where they are others. */
function coloursOf(scheme: 'light' | 'dark'): Record<string, string> {
  const read = (file: string) => {
    const [, block = ''] = /:root \{([^}]*)\}/.exec(STYLES.find(({ name }) => name === file)?.text ?? '') ?? []
    return [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [name, hex])
  }
  return Object.fromEntries([...read('console.css'), ...(scheme === 'dark' ? read('dark.css') : [])])
}

describe.each(['light', 'dark'] as const)('the %s colours', scheme => {
  const colours = coloursOf(scheme)
  const between = (one: string, other: string) => contrast(colours[one] ?? '', colours[other] ?? '')

  it('are those that were decided', () => {
    expect(colours).toMatchObject(DECIDED[scheme])
  })

  it.each(GROUNDS)('can be read on the %s', ground => {
    for (const text of TEXTS) expect(between(text, ground), text).toBeGreaterThanOrEqual(4.5)
    for (const line of ['border', 'link']) expect(between(line, ground), line).toBeGreaterThanOrEqual(3)
  })

  it('can be read on a button, and in the word of the environment', () => {
    for (const button of ['link', 'bad']) expect(between('ground', button), button).toBeGreaterThanOrEqual(4.5)
    expect(between('on-amber', 'amber')).toBeGreaterThanOrEqual(4.5)
  })
})

describe('the styles', () => {
  it('name colours only where the two schemes are', () => {
    const named = STYLES.flatMap(
      ({ name, text }) =>
        text
          .replace(/:root \{[^}]*\}/g, '')
          .match(/#[0-9a-f]{3,8}\b(?=[^{]*;)|\b(rgb|hsl|oklch)a?\(/gi)
          ?.map(found => `${name}: ${found}`) ?? [],
    )
    expect(named).toEqual([])
  })

  it('move nothing', () => {
    const moving = STYLES.flatMap(({ name, text }) =>
      (text.match(/\b(animation|transition|scroll-behavior)[\w-]*:|@keyframes/g) ?? []).map(
        found => `${name}: ${found}`,
      ),
    )
    expect(moving).toEqual([])
  })
})

describe('a contrast', () => {
  it('is that of WCAG', () => {
    expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 5)
    expect(contrast('#767676', 'rgb(255, 255, 255)')).toBeCloseTo(4.54, 2)
    expect(contrast('rgba(0, 0, 0, 0)', '#ffffff')).toBe(1)
    expect(() => contrast('#ffffff', 'rgba(0, 0, 0, 0)')).toThrow('no opaque colour')
  })
})
