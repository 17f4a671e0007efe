// Opens one page after another, as people with different screens see it, and says of each what is wrong.
import type { CDPSession, Page } from 'playwright-core'
import { RAIL } from '../../../../producers/console/server/page.ts'
import { type FindWrong, openAxe } from './axe.ts'
import { contrast } from './contrast.ts'

/** A place where pages are opened. */
export interface Stand {
  page: Page
  cdp: CDPSession
  origin: string
  /** Who looks, if the address doesn't tell which page it is. */
  whose?: string
}

const SIDES = ['absent', 'command', 'axe', 'narrow', 'focus', 'forced', 'still', 'paper'] as const
/** What is wrong, by what was looked at. */
export type Wrong = Record<(typeof SIDES)[number], string[]>

export function noneWrong(): Wrong {
  return { absent: [], command: [], axe: [], narrow: [], focus: [], forced: [], still: [], paper: [] }
}

export const WHOLE = { width: 1_440, height: 900 }
const PLAIN = { colorScheme: 'light', forcedColors: 'none', reducedMotion: 'no-preference' } as const
/** A tablet, 1440 px at 200 %, a phone, and 1280 px at 400 %. `seen`: how axe-core looks there by all its rules. */
const NARROW = [
  { width: 768, seen: { ...PLAIN, colorScheme: 'dark' } },
  { width: 720, seen: { ...PLAIN, forcedColors: 'active', reducedMotion: 'reduce' } },
  { width: 375, seen: PLAIN },
  { width: 320, seen: undefined },
] as const

export async function walk(stand: Stand, path: string, wrong: Wrong): Promise<void> {
  const { page, cdp, origin, whose = '' } = stand
  const say = (side: keyof Wrong, found: readonly string[], how = '') =>
    wrong[side].push(...found.map(one => `${path}${whose}${how}: ${one}`))
  const answer = await page.goto(`${origin}${path}`)
  if (!answer?.ok()) say('absent', [String(answer?.status())])
  // A page that isn't shown does nothing that a command could, and a wall display has nothing to press or to copy.
  if (answer?.ok() && !path.startsWith('/display')) say('command', (await page.evaluate(COMMAND)) as string[])
  const hasMenu = RAIL.some(({ to }) => to.text === path) && whose === ''
  const findWrong = await openAxe(cdp)
  say('axe', await findWrong('all'))
  say('focus', await focusWrong(page))
  await page.emulateMedia({ colorScheme: 'dark' })
  say('axe', await findWrong('colours'), ', dark')
  say('focus', await focusWrong(page), ', dark')
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' })
  say('paper', (await page.evaluate(PAPER)) as string[])
  await page.emulateMedia({ colorScheme: 'light', media: 'screen', forcedColors: 'active', reducedMotion: 'reduce' })
  say('axe', await findWrong('colours'), ', forced colours')
  say('forced', [...(await focusWrong(page)), ...((await page.evaluate(FORCED)) as string[])])
  say('still', (await page.evaluate(STILL)) as string[])
  await page.emulateMedia(PLAIN)
  for (const { width, seen } of NARROW) {
    await page.setViewportSize({ width, height: 900 })
    say('narrow', (await page.evaluate(SIDEWAYS)) as string[], ` at ${width}`)
    if (seen === undefined) continue
    await page.emulateMedia(seen)
    say('axe', await findWrong('all'), ` at ${width}`)
    if (hasMenu) say('axe', await menuWrong(page, findWrong), ` at ${width}, with its menu`)
    await page.emulateMedia(PLAIN)
  }
  await page.evaluate(SPACED)
  say('narrow', (await page.evaluate(SIDEWAYS)) as string[], ' at 320 with wider texts')
  await page.setViewportSize(WHOLE)
}

/** The page with its menu open, which is the same on the pages that it leads to but for the one that is marked. */
async function menuWrong(page: Page, findWrong: FindWrong): Promise<string[]> {
  await page.evaluate(`document.querySelector('#rail').showPopover()`)
  const found = await findWrong('all')
  await page.evaluate(`document.querySelector('#rail').hidePopover()`)
  return found
}

/** The command that shows or does the same, or that there is none and why. */
const COMMAND = `(() => {
  const told = [...document.querySelectorAll('.same')].filter(one => one.checkVisibility())
  return told.some(one => one.querySelector('.command') || /^No command /.test(one.textContent)) ? [] : [document.querySelector('h1')?.textContent ?? '']
})()`

const SIDEWAYS = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return []
  const wide = [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > clientWidth + 1)
  return [scrollWidth - clientWidth + ' px too wide: ' + wide.slice(-3).map(one => one.outerHTML.slice(0, 120)).join(' | ')]
})()`

/** The distances of texts that WCAG 1.4.12 lets a person choose. */
const SPACED = `(() => {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } p { margin-bottom: 2em !important }')
  document.adoptedStyleSheets = [sheet]
})()`

const STILL = `(() => [
  ...document.getAnimations().map(one => 'an animation: ' + one.constructor.name),
  ...[...document.querySelectorAll('*')].filter(one => getComputedStyle(one).transitionDuration !== '0s').map(one => 'a transition: ' + one.outerHTML.slice(0, 80)),
])()`

const PAPER = `(() => {
  const isShown = one => one.checkVisibility() && one.getClientRects().length > 0
  const holdsText = one => [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim() !== '')
  const texts = [...document.querySelectorAll('body *:not(title, desc, noscript, script)')].filter(one => isShown(one) && holdsText(one))
  const paint = one => { const style = getComputedStyle(one); return one instanceof SVGElement ? style.fill : style.color }
  return [
    ...[...document.querySelectorAll('.rail, .menu, .skip, button, input, textarea')].filter(isShown).map(one => 'is printed: ' + one.outerHTML.slice(0, 80)),
    ...texts.filter(one => paint(one) !== 'rgb(0, 0, 0)').map(one => paint(one) + ' is not black: ' + one.outerHTML.slice(0, 80)),
    ...(getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)' ? [] : ['the paper is not white']),
    ...(document.querySelector('.rail') && document.querySelector('main').getBoundingClientRect().left > 40 ? ['there is room for the rail'] : []),
  ]
})()`

/** A state is a glyph and a word, and the lines of a chart are seen on their ground. */
const FORCED = `(() => {
  const ground = getComputedStyle(document.body).backgroundColor
  const states = [...document.querySelectorAll('.state')].filter(one => one.textContent.trim() === '' || !one.querySelector('.glyph')?.hasChildNodes() || one.textContent.replace(one.querySelector('.glyph').textContent, '').trim() === '')
  const lines = [...document.querySelectorAll('.plot .edge, .plot .total, .plot .forecast, .gauge .line path, .gauge .line .alarm')]
  return [
    ...states.map(one => 'a state without glyph or word: ' + one.outerHTML),
    ...lines.filter(one => ['none', ground].includes(getComputedStyle(one).stroke)).map(one => 'a line that is not seen: ' + one.outerHTML.slice(0, 80)),
  ]
})()`

interface Focused {
  html: string
  outline: string
  width: number
  style: string
  ground: string
  box: { left: number; top: number; right: number; bottom: number }
}

/** Every element that takes the focus, in the order in which it does, as it looks with the focus. */
const FOCUSED = `(() => {
  const all = [...document.querySelectorAll('a[href], button:not(:disabled), input:not([type=hidden]), select, textarea, summary')]
  const groundOf = one => {
    for (let at = one.parentElement; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at)
      if (!backgroundColor.endsWith(', 0)')) return backgroundColor
    }
    return 'rgb(255, 255, 255)'
  }
  const top = scrollY
  const found = all.filter(one => one.checkVisibility({ visibilityProperty: true })).map(one => {
    one.focus({ focusVisible: true, preventScroll: true })
    const { outlineColor, outlineWidth, outlineStyle } = getComputedStyle(one)
    const { left, top, right, bottom } = one.getBoundingClientRect()
    return { html: one.outerHTML.slice(0, 100), outline: outlineColor, width: parseFloat(outlineWidth), style: outlineStyle, ground: groundOf(one), box: { left, top, right, bottom } }
  })
  document.activeElement.blur()
  return found
})()`

/** The focus is seen on each element, and goes on downwards or to the right. */
async function focusWrong(page: Page): Promise<string[]> {
  const focused = (await page.evaluate(FOCUSED)) as Focused[]
  const unseen = focused.filter(
    ({ outline, width, style, ground, box }) =>
      style === 'none' || width < 2 || box.right <= 0 || box.right <= box.left || contrast(outline, ground) < 3,
  )
  const back = focused.filter(({ box }, at) => {
    const before = focused[at - 1]?.box
    return before !== undefined && box.bottom <= before.top && box.left < before.right
  })
  return [
    ...unseen.map(
      ({ html, outline, width, style, ground }) =>
        `the focus is not seen (${width}px ${style} ${outline} on ${ground}): ${html}`,
    ),
    ...back.map(({ html }) => `the focus goes back: ${html}`),
  ]
}
