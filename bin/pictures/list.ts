// Which pictures of the console the documents show. Every entry of the rail has one: a page that somebody adds is taken, too.
import { RAIL } from '../../producers/console/server/page.ts'

/** What the pictures' installation has, by the words under which a page shows it. */
export const NAMES = {
  running: 'autumn-2026-part-2',
  finished: 'autumn-2026-part-1',
  stopped: 'winter-2026',
  jti: 'order-2041',
} as const

export interface Picture {
  /** The file: docs/pictures/NAME.png. */
  name: string
  path: string
  /** The links that lead from there to the page. */
  follow?: readonly string[]
  /** What is typed into the field of the page Explain. */
  search?: string
  width?: number
  isDark?: boolean
  /** The act of the page is done, and its verdict is shown. */
  isDone?: boolean
  /** How much of the page is shown at most, in px. */
  heightMax?: number
}

/** Of these pages more or less than usual is shown, in px. */
const HEIGHTS: Partial<Record<string, number>> = { audit: 1_000, installation: 1_530 }

const ofRail: Picture[] = RAIL.map(({ at, to }) => {
  const heightMax = HEIGHTS[at]
  return { name: at, path: to.text, ...(heightMax === undefined ? {} : { heightMax }) }
})

export const PICTURES: readonly Picture[] = [
  ...ofRail,
  { name: 'now-dark', path: '/now', isDark: true },
  { name: 'now-375', path: '/now', width: 375 },
  { name: 'batch', path: '/batches', follow: [NAMES.running] },
  { name: 'batch-act', path: '/batches', follow: [NAMES.running, 'Cancel…'] },
  { name: 'failed-job', path: '/failed', follow: ['report'] },
  { name: 'explain-job', path: '/explain', search: NAMES.jti },
  { name: 'clients', path: '/installation/clients' },
  { name: 'verdict', path: '/batches', follow: [NAMES.running, 'Pause…'], isDone: true },
]

/** Pages that no document shows. */
const OTHERS: readonly Picture[] = [
  { name: 'person', path: '/people', follow: ['Ada Brandt'] },
  { name: 'invite', path: '/people/invite' },
  { name: 'schedule', path: '/reports', follow: ['Token activity report'] },
  { name: 'refused-rows', path: '/batches', follow: [NAMES.finished, 'rows were refused'] },
  { name: 'sign-in', path: '/sign-in' },
  { name: 'display', path: '/display' },
]

/** Each page at each width in light and dark, whole. The act is done once. */
export function inAllSizes(): Picture[] {
  const pages = [...PICTURES.filter(({ width, isDark }) => width === undefined && !isDark), ...OTHERS]
  const all = [1_440, 768, 375].flatMap(width =>
    [false, true].flatMap(isDark =>
      pages
        .filter(({ isDone }) => !isDone || (width === 1_440 && !isDark))
        .map(page => {
          const name = `${page.name}-${width}${isDark ? '-dark' : ''}`
          return { ...page, name, width, isDark, heightMax: 6_000 }
        }),
    ),
  )
  // Whoever pauses a batch changes what the other pages show.
  return all.toSorted((a, b) => Number(a.isDone ?? false) - Number(b.isDone ?? false))
}
