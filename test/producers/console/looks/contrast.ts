// The contrast of two colours as WCAG 2 defines it (relative luminance).

type Colour = readonly [red: number, green: number, blue: number]

/** `#1b1f24`, `rgb(27, 31, 36)`, or `rgba(27, 31, 36, 0.8)` as it looks on a ground. */
function readColour(text: string, ground?: Colour): Colour {
  const [, hex] = /^#([0-9a-f]{6})$/i.exec(text) ?? []
  const numbers = hex
    ? [0, 2, 4].map(at => Number.parseInt(hex.slice(at, at + 2), 16))
    : (/^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/.exec(text)?.slice(1) ?? []).map(part => Number(part ?? 1))
  const [red, green, blue, share = 1] = numbers
  if (red === undefined || green === undefined || blue === undefined || (share < 1 && !ground))
    throw new Error(`${text} is no opaque colour`)
  const [groundRed, groundGreen, groundBlue] = ground ?? [0, 0, 0]
  const on = (value: number, under: number) => value * share + under * (1 - share)
  return [on(red, groundRed), on(green, groundGreen), on(blue, groundBlue)]
}

/** From 1 (no contrast) to 21. */
export function contrast(one: string, ground: string): number {
  const under = readColour(ground)
  const [light = 0, dark = 0] = [luminance(readColour(one, under)), luminance(under)].sort((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map(value => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
