// The operator's pages name every setting, metric, exit status and fault, and links lead somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { EXIT } from '../../../cli/exit.ts'
import { FAULTS } from '../../../src/errors.ts'
import { metricNames } from '../../ops/metric-names.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const cellsOf = (path: string) =>
  read(path)
    .split('\n')
    .filter(line => line.startsWith('|'))
    .map(row => row.split('|')[1] ?? '')
const isNamed = (cells: readonly string[], name: string) => cells.some(cell => cell.includes(`\`${name}\``))

describe("the operator's pages", () => {
  it('have a row for every setting, and none for a setting that is gone', () => {
    const files = ['src/config.ts', 'producers/console/settings.ts', 'producers/console/openid-provider/settings.ts']
    const settings = files.flatMap(file =>
      [...read(file).matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name = '']) => name),
    )
    const cells = cellsOf('docs/settings.md')
    expect(settings.length).toBeGreaterThan(10)
    expect(settings.filter(name => !isNamed(cells, name))).toEqual([])
    const named = cells.flatMap(cell => /`(TOKENMILL_[A-Z_]+|[A-Z]+_URL)`/.exec(cell)?.[1] ?? [])
    expect(named.filter(name => !settings.includes(name))).toEqual([])
  })

  it('have a row for every metric, and none for a metric that is gone', async () => {
    const metrics = await metricNames()
    const cells = cellsOf('docs/metrics.md')
    expect(metrics.filter(name => !isNamed(cells, name))).toEqual([])
    const named = cells.flatMap(cell => /`(tokenmill_[a-z_]+)`/.exec(cell)?.[1] ?? [])
    expect(named.filter(name => !metrics.includes(name))).toEqual([])
  })

  it('have a row for every exit status and every fault', () => {
    const statuses = Object.values(EXIT).map(String)
    const cells = cellsOf('docs/on-call.md')
    expect(statuses.filter(status => !cells.some(cell => cell.trim() === status))).toEqual([])
    expect(Object.keys(FAULTS).filter(fault => !isNamed(cells, fault))).toEqual([])
  })
})

describe('the pages', () => {
  const pages = ['README.md', 'CHANGELOG.md', ...pagesIn('docs'), ...pagesIn('docs/decisions')]

  it.each(pages)('%s links to nothing that is not there', path => {
    const links = [...read(path).matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)]
    const broken = links.filter(([, target = '', anchor]) => {
      if (/^https?:/.test(target)) return false
      const at = target === '' ? path : new URL(target, `file:///${path}`).pathname.slice(1)
      if (!existsSync(new URL(`../../../${at}`, import.meta.url))) return true
      return anchor !== undefined && !anchorsOf(read(at)).has(anchor)
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })

  it.each(pages.filter(path => path !== 'CHANGELOG.md'))('%s names no file of the code that is not there', path => {
    const named = [...read(path).matchAll(/`((?:src|producers|workers|cli|bin|test)\/[\w./-]+)`/g)]
    const files = named.map(([, file = '']) => file)
    expect(files.filter(file => !existsSync(new URL(`../../../${file}`, import.meta.url)))).toEqual([])
  })
})

function pagesIn(folder: string): string[] {
  const names = readdirSync(new URL(`../../../${folder}/`, import.meta.url)).filter(name => name.endsWith('.md'))
  return names.map(name => `${folder}/${name}`)
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading.toLowerCase())
  return new Set(headings.map(heading => heading.replace(/[^a-z0-9_ -]/g, '').replaceAll(' ', '-')))
}
