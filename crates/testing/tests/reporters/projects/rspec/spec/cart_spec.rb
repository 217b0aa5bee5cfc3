def check(got, want)
  raise ArgumentError, "got #{got}, want #{want}" unless got == want
end

RSpec.describe 'cart' do
  it('passes') {}
  it('fails') { expect(1 + 1).to eq 3 }
  it('throws in a helper') { check(1, 2) }
  xit('skipped') { raise 'never' }
  it('is pending') { pending 'known bug'; raise 'as expected' }
  it('is fixed') { pending 'known bug' }
  it('parameter 日本 ✓') {}

  context 'with a database' do
    before(:all) { raise 'no database' }
    it('reads') {}
  end

  it('crashes') { Process.abort } if ENV['CRASH']
  it('hangs') { sleep 1000 } if ENV['HANG']
end
