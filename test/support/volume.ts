// How much a suite works through where more only makes it longer: `npm test` takes the first number, `npm run soak` the
// second.
export const SOAK = 'TOKENMILL_SOAK'

export function volume(usual: number, soaked: number): number {
  return process.env[SOAK] === '1' ? soaked : usual
}
