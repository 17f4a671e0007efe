// Restores a search expression whose `&` wasn't percent-encoded: `?search=status==FAILED&createdOn>2030-01-31` arrives
// as two parameters. A part that looks like a comparison and isn't a known parameter belongs to the search. The rest of
// the query stays unchanged.
import querystring from 'node:querystring'

/** How a comparison begins; a parameter's name is followed by a single `=`. */
const COMPARISON = /^[ (]*[^"'();&,=!~<>\s]+(==|!=|=[A-Za-z]+=|[<>])/
const SEARCH = /^search=/

/** The parameters of the URL's query with the search as one parameter; undefined if nothing needs to be joined. */
export function joinRawSearch(url: string, parameters: readonly string[]): querystring.ParsedUrlQuery | undefined {
  const [, query = ''] = /\?([^#]*)/s.exec(url) ?? []
  const parts = query.split('&')
  const begin = parts.findIndex(part => SEARCH.test(part))
  if (begin < 0) return undefined
  const belongs = (part: string, index: number) => {
    const text = querystring.unescape(part.replaceAll('+', ' '))
    return index > begin && COMPARISON.test(text) && !parameters.some(name => text.startsWith(`${name}=`))
  }
  const rest = parts.filter(belongs)
  if (rest.length === 0) return undefined
  const search = [parts[begin], ...rest].join('%26')
  return querystring.parse(
    parts.flatMap((part, index) => (index === begin ? search : belongs(part, index) ? [] : part)).join('&'),
  )
}
