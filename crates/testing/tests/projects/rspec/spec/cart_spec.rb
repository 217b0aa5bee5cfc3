RSpec.describe 'cart' do
  it 'passes' do
  end

  it 'fails' do
    expect(1 + 1).to eq(3)
  end

  it 'is skipped', skip: 'not today' do
  end

  it 'misbehaves' do
    Process.kill('SEGV', Process.pid) if ENV['MISBEHAVE'] == 'crash'
    sleep 3600 if ENV['MISBEHAVE'] == 'hang'
  end
end
